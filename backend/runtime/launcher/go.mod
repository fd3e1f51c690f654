module jupyter-pai/launcher

go 1.21
