"""Jobs for assistants of language models, by the Model Context Protocol (``pai mcp``). Needs the extra ``mcp``."""
