"""jupyter-pai beside the user: server extension, magics, widgets, command line and connect files.

May import ``pai_backend.model`` and ``pai_backend.protocol`` and nothing else of the backend. Importing
this package must stay cheap, so nothing is imported here before it is asked for.
Start reading with ``client`` (what can be asked) and ``embedded`` (who answers).
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take this name for true; importing typing would cost more than all the rest
if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def __getattr__(name: str) -> object:
    """``__version__``, read from the installed distribution, and ``form``, when they are first asked for."""
    if name == "form":
        from jupyter_pai.widgets.form import form

        return form
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("jupyter-pai")


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where JupyterLab finds the built panel. Called by ``jupyter labextension develop``."""
    return [{"src": "labextension", "dest": "jupyter-pai"}]


def _jupyter_server_extension_points() -> list[dict[str, object]]:
    """The server extension. Called by jupyter_server when it lists or loads extensions."""
    from jupyter_pai.extension import PaiExtension

    return [{"module": "jupyter_pai", "app": PaiExtension}]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register ``%pai`` and ``%%pai``, and what Tab offers behind them. Called by ``%load_ext jupyter_pai``."""
    from jupyter_pai import jupyter_language, language
    from jupyter_pai.completion import complete
    from jupyter_pai.magics import PaiMagics

    language.follow_jupyter(jupyter_language.locale())
    shell.register_magics(PaiMagics)
    shell.set_hook("complete_command", complete, str_key="%pai")
