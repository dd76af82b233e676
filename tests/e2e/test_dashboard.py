"""The dashboard in real Chromium, on the real service, while real searches run against a model with known answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.model import ModelServer
from tests.e2e.stack import Service

pytestmark = pytest.mark.e2e

OpenPage = Callable[..., Page]
Submit = Callable[..., str]


@pytest.fixture(scope="module")
def finished(service: Service, submit: Submit) -> dict[str, Any]:
    """A search that is over: two arms, three problems."""
    return service.wait(submit("finished search"))


def chart(page: Page, name: str) -> Locator:
    return page.get_by_role("figure", name=name)


def test_list_says_how_to_begin_then_shows_a_new_search(open_page: OpenPage, submit: Submit) -> None:
    page = open_page()
    expect(page.get_by_text("No searches yet")).to_be_visible()
    search = submit("first of all", problems=1)
    # Without a reload.
    card = page.locator(".search-card", has_text="first of all")
    expect(card).to_be_visible()
    expect(card.get_by_text("Done")).to_be_visible()
    expect(card).to_contain_text("1 / 1 solved")
    page.get_by_role("link", name="first of all").click()
    expect(page).to_have_url(re.compile(rf"#/search/{search}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("first of all")


def test_curves_move_while_the_search_runs(
    open_page: OpenPage, submit: Submit, model: ModelServer, service: Service
) -> None:
    model.close_gate()
    try:
        search = submit("moving search", problems=1, arms=("slow-3",))
        page = open_page(f"#/search/{search}")
        slider = chart(page, "best@t").get_by_role("slider")
        curve = chart(page, "best@t").locator(".series .curve").first
        expect(page.locator(".search-title .pill")).to_have_text(re.compile("Queued|Running"))
        expect(page.locator(".live")).to_have_text("Live")
        expect(slider).to_be_visible()
        seen = set()
        for _ in range(3):
            before = curve.get_attribute("d") or ""
            model.allow(1)
            expect(curve).not_to_have_attribute("d", before)
            seen.add(curve.get_attribute("d"))
        assert len(seen) == 3
        expect(page.locator(".search-title .pill")).to_have_text("Running")
    finally:
        model.open()
    expect(page.locator(".search-title .pill")).to_have_text("Done")
    expect(page.locator(".arm")).to_contain_text("1 / 1")
    expect(page.get_by_role("button", name="Cancel search")).to_have_count(0)
    final = service.get(f"/search/{search}/curve")["arms"][0]
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"{final['best_at_t'][-1]:.3f}$"))


def test_read_out_shows_the_exact_values(open_page: OpenPage, finished: dict[str, Any], service: Service) -> None:
    page = open_page(f"#/search/{finished['id']}")
    arms = service.get(f"/search/{finished['id']}/curve")["arms"]
    for share in (0.3, 0.6, 0.9):
        box = chart(page, "best@t").get_by_role("slider").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 120)
        t = int((chart(page, "best@t").locator(".read-out strong").text_content() or "").split()[-1])
        for row, arm in enumerate(arms):
            i = min(t, arm["t"][-1])
            best = chart(page, "best@t").locator(".read-out tr").nth(row)
            expect(best).to_have_text(f" {arm['arm']}{arm['best_at_t'][i]:.3f}")
            solved = chart(page, "pass@t").locator(".read-out tr").nth(row)
            expect(solved).to_have_text(f" {arm['arm']}{arm['solved'][i]} / 3 ({100 * arm['pass_at_t'][i]:.1f}%)")
    page.mouse.move(2, 2)
    expect(page.locator(".read-out")).to_have_count(0)


def test_keyboard_reads_the_curves(open_page: OpenPage, finished: dict[str, Any]) -> None:
    page = open_page(f"#/search/{finished['id']}")
    slider = chart(page, "pass@t").get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(chart(page, "pass@t").locator(".read-out strong")).to_have_text("Iteration 0")
    page.keyboard.press("ArrowRight")
    expect(chart(page, "best@t").locator(".read-out strong")).to_have_text("Iteration 1")
    page.keyboard.press("Escape")
    expect(page.locator(".read-out")).to_have_count(0)


def test_axis_of_tokens_and_hidden_arms(open_page: OpenPage, finished: dict[str, Any], service: Service) -> None:
    page = open_page(f"#/search/{finished['id']}")
    expect(page.locator(".series")).to_have_count(4)
    page.get_by_role("button", name="Tokens", exact=True).first.click()
    most = max(arm["tokens"][-1] for arm in service.get(f"/search/{finished['id']}/curve")["arms"])
    expect(chart(page, "pass@t").get_by_role("slider")).to_have_attribute("aria-valuemax", str(most))
    page.get_by_role("button", name="slow").first.click()
    expect(page.locator(".series")).to_have_count(2)


def test_program_with_its_verdicts(open_page: OpenPage, submit: Submit, service: Service) -> None:
    search = service.wait(submit("half solved", arms=("slow-9",), problems=1, iterations=14))
    run = search["runs"][0]
    best = service.get(f"/search/{search['id']}/programs?run={run['id']}&order=best&limit=1")["programs"][0]
    assert 0 < best["scalar"] < 1
    page = open_page(f"#/search/{search['id']}")
    panel = page.get_by_role("region", name="Best program")
    passed = best["statuses"].count("passed")
    expect(panel).to_contain_text(f"{passed} of 12 tests passed")
    expect(page.locator(".runs .reward-row")).to_have_attribute("aria-label", f"{passed} of 12 tests passed")
    for line in best["source"].strip().splitlines():
        expect(panel.locator(".source")).to_contain_text(line.strip())
    assert panel.locator(".py-keyword").count() > 1
    failed = next(i for i, status in enumerate(best["statuses"]) if status != "passed")
    panel.get_by_role("button", name=f"{best['components'][failed]}:").click()
    expect(panel.locator(".verdict-detail pre")).to_have_text(best["messages"][failed])
    passing = best["statuses"].index("passed")
    panel.get_by_role("button", name=f"{best['components'][passing]}:").hover()
    expect(panel.locator(".verdict-detail")).to_have_text(f"{best['components'][passing]}: passed")


def test_runs_are_sorted_filtered_and_chosen(open_page: OpenPage, finished: dict[str, Any]) -> None:
    page = open_page(f"#/search/{finished['id']}")
    rows = page.locator(".runs tbody tr")
    expect(rows).to_have_count(6)
    page.get_by_role("button", name="Solved at").click()
    times = [int(text) for text in page.locator(".runs td.col-solved_at").all_text_contents() if text != "–"]
    assert times == sorted(times, reverse=True)
    assert len(times) > 3
    page.get_by_role("button", name="Failed").click()
    expect(page.get_by_text("No run is failed.")).to_be_visible()
    page.get_by_role("button", name="All", exact=True).click()
    row = rows.filter(has_text="first-sign").filter(has_text="quick")
    row.get_by_role("button", name="first-sign").press("Enter")
    expect(page.locator(".program-run")).to_contain_text("first-sign")
    expect(page).to_have_url(re.compile(r"/run/\d+$"))
    page.reload()
    expect(page.locator(".program h2")).to_have_text("Best program of the run")
    expect(page.locator(".program-run")).to_contain_text("first-sign")


def test_cancelling_and_resuming(open_page: OpenPage, submit: Submit, model: ModelServer) -> None:
    model.close_gate()
    try:
        search = submit("not wanted any more", iterations=1000)
        page = open_page(f"#/search/{search}")
        page.get_by_role("button", name="Cancel search").click()
        dialog = page.get_by_role("dialog", name="Cancel this search?")
        dialog.get_by_role("button", name="Keep running").click()
        expect(dialog).not_to_be_visible()
        page.get_by_role("button", name="Cancel search").click()
        dialog.get_by_role("button", name="Cancel search").click()
        expect(page.locator(".search-title .pill")).to_have_text("Cancelled")
        page.get_by_role("button", name="Resume search").click()
        expect(page.get_by_role("button", name="Cancel search")).to_be_visible()
        expect(page.locator(".search-title .pill")).not_to_have_text("Cancelled")
        page.get_by_role("button", name="Cancel search").click()
        dialog.get_by_role("button", name="Cancel search").click()
        expect(page.locator(".search-title .pill")).to_have_text("Cancelled")
    finally:
        model.open()


def test_failed_run_says_why(open_page: OpenPage, submit: Submit, service: Service) -> None:
    search = service.wait(submit("no such model", arms=("unknown",), problems=1))
    page = open_page(f"#/search/{search['id']}")
    expect(page.locator(".search-title .pill")).to_have_text("Failed")
    expect(page.locator(".error-row")).to_have_text(search["runs"][0]["error"])
    expect(page.locator(".run-error")).to_contain_text("does not exist")


def test_unknown_search_and_page(open_page: OpenPage) -> None:
    page = open_page("#/search/999999", quiet=False)
    expect(page.get_by_role("heading", name="There is no such search")).to_be_visible()
    page = open_page("#/somewhere")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()


def test_service_away_and_back(open_page: OpenPage, finished: dict[str, Any]) -> None:
    page = open_page(quiet=False)
    expect(page.locator(".search-card", has_text="finished search")).to_be_visible()
    page.context.set_offline(True)
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer")
    expect(page.locator(".search-card", has_text="finished search")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_fits_the_screen_in_both_schemes(
    open_page: OpenPage, finished: dict[str, Any], width: int, scheme: str
) -> None:
    for view in ("#/", f"#/search/{finished['id']}"):
        page = open_page(view, viewport={"width": width, "height": 844}, color_scheme=scheme)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if view != "#/":
            expect(page.locator(".series")).to_have_count(4)
            expect(page.locator(".source")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        red = page.evaluate("parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
        assert (red < 64) == (scheme == "dark")


def test_names_and_programs_are_shown_as_text(open_page: OpenPage, submit: Submit, service: Service) -> None:
    name = "<img src=x onerror=alert(1)> & <script>alert(2)</script>"
    search = service.wait(submit(name, problems=1, arms=("quick-1",)))
    page = open_page(f"#/search/{search['id']}")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    assert page.locator("main img, main script").count() == 0
