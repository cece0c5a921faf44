"""What every lab shares: settings, a script, a still picture.

A lab is a picture that the reader moves. It runs in two places from the same
text: in Jupyter as an ordinary widget, and on a page of the book without any
kernel. `selfattn.labs` tells how one is made.
"""

import base64
from typing import Any, ClassVar

import anywidget
import traitlets
from matplotlib.figure import Figure

from selfattn.labs.machinery import esm, settings
from selfattn.plots.showing import picture


class Lab(anywidget.AnyWidget):
    """The base of all labs; a lab adds settings, `figure` and `describe`.

    Attributes:
        rules: each setting's kind, bounds and start, for the page.
        alt: the still picture in words, for those who cannot see it.
    """

    rules = traitlets.Dict(read_only=True).tag(sync=True)
    alt = traitlets.Unicode().tag(sync=True)
    stem: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Find the script beside the class: it has the module's name."""
        # anywidget makes a subclass of its own for each lab, with these in it.
        if "_esm" not in vars(cls):
            cls.stem = cls.__module__.rpartition(".")[2]
            cls._esm = esm.module_text(cls.stem)
            cls._css = (esm.LABS / esm.STYLE).read_text(encoding="utf-8")
        super().__init_subclass__(**kwargs)

    def __init__(self, **start: Any):
        known = self.settings()
        for name in start:
            if name not in known and not self.has_trait(name):
                raise settings.SettingError(
                    f"the settings of a {type(self).__name__} are "
                    f"{', '.join(known)}, but {name!r} is none of them"
                )
        super().__init__(**start)

    @classmethod
    def settings(cls) -> dict[str, Any]:
        """The lab's settings by name, in the order of their declaration."""
        return {
            name: trait
            for base in reversed(cls.__mro__)
            for name, trait in vars(base).items()
            if isinstance(trait, settings.KINDS)
        }

    def values(self) -> dict[str, Any]:
        """The settings as they are now."""
        return {name: getattr(self, name) for name in self.settings()}

    def figure(self) -> Figure:
        """The still picture of the present setting."""
        raise NotImplementedError

    def describe(self) -> str:
        """The still picture in words."""
        raise NotImplementedError

    def shown(self) -> dict[str, Any]:
        """The settings that `repr` shows: by default those not at rest."""
        return {
            name: value
            for name, value in self.values().items()
            if value != self.settings()[name].default(self)
        }

    @traitlets.default("rules")
    def _rules(self) -> dict[str, Any]:
        return {
            name: trait.rule() | {"start": getattr(self, name)}
            for name, trait in self.settings().items()
        }

    @traitlets.default("alt")
    def _alt(self) -> str:
        return self.describe()

    @traitlets.observe(traitlets.All)
    def _follow(self, change: Any) -> None:
        """Lower what another setting bounds, when that one has changed."""
        for name, trait in self.settings().items():
            if getattr(trait, "of", None) == change.name:
                setattr(self, name, trait.settled(self))

    def __repr__(self) -> str:
        """The call that makes this lab, and nothing that changes by itself."""
        shown = ", ".join(f"{k}={v!r}" for k, v in self.shown().items())
        return f"{type(self).__name__}({shown})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live view, and the still picture for where it cannot run."""
        data, metadata = super()._repr_mimebundle_(**kwargs)
        self.alt = self.describe()
        png, size = picture(self.figure(), phone=False)
        data["image/png"] = base64.b64encode(png).decode()
        return data, metadata | {"image/png": {"alt": self.alt, **size}}
