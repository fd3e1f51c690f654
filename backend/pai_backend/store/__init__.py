"""All that is kept, and the only room with SQL. ``base`` is the interface the other rooms see."""
