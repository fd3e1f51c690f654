"""Live views for notebook cells. ``html`` is pure text; ``job_view`` holds the widgets and their thread."""
