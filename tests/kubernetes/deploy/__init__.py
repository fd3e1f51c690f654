"""The chart and the image that administrators install: rendered, checked, installed on a real cluster; its rights."""
