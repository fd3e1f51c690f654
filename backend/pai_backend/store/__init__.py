"""All that is kept, and the only room with SQL. ``sql.Store`` has a repository for each subject; start there."""
