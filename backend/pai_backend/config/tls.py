"""The keys of the API's own TLS."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from pai_backend.model.base import Model


class TlsSettings(Model):
    """The API by https, where no proxy in front ends TLS."""

    certificate: Path | None = Field(
        default=None,
        description="File with the certificate of the API's host, and of `*.<api.service_domain>`, in PEM, with those "
        "that signed it behind. With it the API speaks https alone. A file that is renewed is read within a second.",
    )
    key: Path | None = Field(default=None, description="File with the private key of the certificate, in PEM.")

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together: name both files")
        return self
