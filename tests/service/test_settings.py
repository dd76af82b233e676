"""Settings from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from service.settings import Settings, conninfo


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_database_urls_of_any_spelling_are_for_the_one_driver(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{scheme}://me:pw@host/x?sslmode=require")
    settings = Settings()
    assert settings.database_url == "postgresql+psycopg://me:pw@host/x?sslmode=require"
    assert conninfo(settings.database_url) == "postgresql://me:pw@host/x?sslmode=require"
    assert "pw" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value"), [("DATABASE_URL", "mysql://me:pw@h/x"), ("REDIS_URL", "http://me:pw@h"), ("VPO_PORT", "99999")]
)
def test_wrong_settings_are_refused_without_showing_secrets(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert "me:pw" not in str(caught.value)


def test_empty_urls_mean_embedded_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    monkeypatch.setenv("REDIS_URL", "")
    assert (Settings().database_url, Settings().redis_url) == (None, None)


def test_folders_are_a_json_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VPO_FOLDERS", '{"tables": "/srv/tables"}')
    assert Settings().folders == {"tables": Path("/srv/tables")}
