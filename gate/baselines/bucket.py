"""Baselines in an object store: S3 and compatible stores, Google Cloud Storage, Azure Blob Storage.

Uses obstore. The store's own write conditions ensure that a write succeeds only on top of the version that was read, so
that no writer loses another's data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from gate.baselines.base import StoreOptions, StoreSettings
from gate.baselines.blobs import BlobStore
from gate.errors import BaselineError, ConfigError
from gate.security.limits import MAX_DOCUMENT_BYTES, shorten

if TYPE_CHECKING:
    from obstore.store import ObjectStore

INSTALL = "pip install 'agent-gate[buckets]'"
SCHEMES: Mapping[str, tuple[str, ...]] = {
    "s3": (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    ),
    "gs": (
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
    ),
    "az": (
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_CLIENT_ID",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_STORAGE_TENANT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
    ),
}
"""Scheme of the address → the environment variables for signing in. No others are read."""
TIMEOUT = "30s"
"""Limit for one request."""
RETRIES: Any = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
"""Retries after a failure that may pass."""
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_QUERY = re.compile(r"\?[^\s\"')]+")
"""The query of an address, which may contain a signature."""


class BucketOptions(StoreOptions):
    """The place of the bucket; the environment says who signs in."""

    url: str = ""
    """Address of the bucket, ``s3://``, ``gs://`` or ``az://``, such as ``s3://BUCKET/PREFIX``."""
    endpoint: str = ""
    """Another server that speaks the bucket's protocol, such as ``https://minio.example.com``."""


class BucketStore(BlobStore):
    """`BlobStore` in a bucket. Reads and writes whole objects; remembers by their tags which versions it has read."""

    Options = BucketOptions

    def __init__(self, bucket: ObjectStore, where: str) -> None:
        self._bucket = bucket
        self._where = where
        self._seen: dict[str, tuple[bytes, Any]] = {}

    @classmethod
    def open(cls, settings: StoreSettings) -> Self:
        """Return the store without any request. Raises ConfigError for an invalid address, or without obstore."""
        options = BucketOptions.model_validate(settings.options)
        parts = urlsplit(options.url)
        if parts.scheme not in SCHEMES or not parts.netloc or "@" in parts.netloc or parts.query:
            known = ", ".join(f"{scheme}://BUCKET/PREFIX" for scheme in SCHEMES)
            raise ConfigError(f"{options.url!r} is not a bucket", where="baseline.url", hint=f"known: {known}")
        try:
            from obstore.exceptions import BaseError
            from obstore.store import from_url  # weight: 15 MB, for those who use it
        except ImportError:
            raise ConfigError("buckets need obstore, which is not installed", where="baseline", hint=INSTALL) from None
        given = signing_in(settings.environment, SCHEMES[parts.scheme])
        if options.endpoint:
            given["endpoint"] = options.endpoint
        plain = (options.endpoint or given.get("aws_endpoint_url", "")).startswith("http://")
        client = {"timeout": TIMEOUT, "connect_timeout": "10s", "allow_http": plain}
        try:
            bucket = from_url(options.url, config=given, client_options=client, retry_config=RETRIES)  # type: ignore[call-overload]
        except (BaseError, ValueError) as error:
            raise ConfigError(told(error), where="baseline.url", hint="check the credentials") from None
        return cls(bucket, options.url.rstrip("/"))

    def get(self, key: str) -> bytes | None:
        """Return the bytes under a key, or None. Raises `BaselineError`."""
        from obstore.exceptions import BaseError

        try:
            found = self._bucket.get(key)
            if found.meta["size"] > MAX_DOCUMENT_BYTES:
                what = f"{found.meta['size']:,} bytes, at most {MAX_DOCUMENT_BYTES:,} are read"
                raise BaselineError(what, where=f"{self._where}/{key}")
            data = bytes(found.bytes())
        except FileNotFoundError as error:
            if _NO_BUCKET.search(str(error)):  # a mistyped name is not a store without baselines
                raise BaselineError("there is no such bucket", where=self._where) from None
            self._seen.pop(key, None)
            return None
        except (BaseError, OSError) as error:
            raise BaselineError(told(error), where=f"{self._where}/{key}") from None
        tag = {name: found.meta.get(name) for name in ("e_tag", "version")}
        self._seen[key] = data, {name: value for name, value in tag.items() if value}
        return data

    def put(self, key: str, data: bytes, before: bytes | None) -> bool:
        """Write on top of ``before`` only, using the store's own condition. Raises `BaselineError`."""
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        mode: Any = "create"
        if before is not None:
            seen, mode = self._seen.get(key, (None, {}))
            if seen != before or not mode:
                return False
        try:
            self._bucket.put(key, data, mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            return False
        except (BaseError, OSError) as error:
            raise BaselineError(told(error), where=f"{self._where}/{key}") from None
        return True

    def keys(self, prefix: str) -> Iterable[str]:
        """Return the keys that begin with a prefix. Raises `BaselineError`."""
        from obstore.exceptions import BaseError

        try:
            # A bucket lists whole folders only, and the prefix may be a part of a name.
            folder = prefix.rpartition("/")[0]
            listed = []
            for part in self._bucket.list(folder or None):
                listed += [entry["path"] for entry in part]
        except (BaseError, OSError) as error:
            raise BaselineError(told(error), where=self._where) from None
        return [key for key in listed if key.startswith(prefix)]


def signing_in(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return those of these variables that are set, under obstore's names for its settings."""
    return {name.lower(): environment[name] for name in names if environment.get(name)}


def told(error: Exception) -> str:
    """Return an object store's error on one line, without the query of an address, which may contain a signature."""
    first = str(error).partition("\n")[0]
    return f"the bucket cannot be used: {shorten(_QUERY.sub('?…', first), 300)}"
