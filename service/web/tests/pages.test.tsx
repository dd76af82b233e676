import { render } from "preact";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { App } from "../src/app";
import { links, replace } from "../src/router";
import { aCurve, anArm, aProgram, aRun, aSearch } from "./samples";
import { type Answers, FakeEventSource, serve } from "./service";

const text = () => document.body.textContent ?? "";
const find = (selector: string) => {
  const element = document.querySelector<HTMLElement>(selector);
  if (!element) throw new Error(`no ${selector} in ${document.body.innerHTML}`);
  return element;
};
const button = (name: string) =>
  [...document.querySelectorAll("button")].find((one) => one.textContent?.trim() === name) as HTMLButtonElement;

function open(answers: Answers, hash: string) {
  const fetched = serve(answers);
  replace(hash);
  render(<App />, find("#app"));
  return fetched;
}

const searchPage = links.search("s1");

const working = (change: Answers = {}): Answers => ({
  "/search/s1": aSearch(),
  "/search/s1/curve": { arms: [aCurve()] },
  "/search/s1/programs": { programs: [aProgram()], next: null },
  ...change,
});

beforeEach(() => {
  document.body.innerHTML = '<div id="app"></div>';
});

afterEach(() => {
  render(null, find("#app"));
  vi.unstubAllGlobals();
});

describe("the badge of the sandbox", () => {
  const empty = { "/search": { searches: [], next: null } };

  it("says the tier, and what it means", async () => {
    open({ ...empty, "/readyz": { ready: true, tier: "full", checks: { sandbox: { ok: true, detail: "" } } } }, links.list);
    await vi.waitFor(() => expect(find(".sandbox-badge").textContent).toBe("sandbox: full"));
    expect(find(".sandbox-badge").title).toContain("vpo doctor");
  });

  it("shows what is missing when the service is not ready", async () => {
    const checks = { sandbox: { ok: false, detail: "apt install bubblewrap" } };
    open({ ...empty, "/readyz": [503, { ready: false, tier: "none", checks }] }, links.list);
    await vi.waitFor(() => expect(find(".sandbox-badge").textContent).toBe("sandbox: none"));
    expect(find(".sandbox-badge").title).toContain("apt install bubblewrap");
  });
});

describe("the list", () => {
  const list = links.list;

  it("shows each search with its arms", async () => {
    open({ "/search": { searches: [aSearch({ arms: [anArm({ solved: 3, runs: 8 })] })], next: null } }, list);
    await vi.waitFor(() => expect(text()).toContain("held-out problems"));
    expect(find(".search-card").textContent).toContain("3 / 8 solved");
    expect(find(".search-card a").getAttribute("href")).toBe("#/search/s1");
    expect(find('[role="progressbar"]').getAttribute("aria-valuenow")).toBe("30");
  });

  it("says how to begin when there is none", async () => {
    open({ "/search": { searches: [], next: null } }, list);
    await vi.waitFor(() => expect(text()).toContain("No searches yet"));
    expect(text()).toContain("vpo search TASK");
  });

  it("shows the service's problem with what to do", async () => {
    open({ "/search": [503, { title: "The database is away", detail: "start Postgres" }] }, list);
    await vi.waitFor(() => expect(find('[role="alert"]').textContent).toContain("start Postgres"));
  });

  it("says so when the service does not answer", async () => {
    open({}, list);
    await vi.waitFor(() => expect(find('[role="alert"]').textContent).toContain("The service does not answer"));
  });

  it("adds older searches, each once", async () => {
    const pages = [
      { searches: [aSearch({ id: "s2", name: "second" })], next: "/search?before=2" },
      { searches: [aSearch({ id: "s2", name: "second" }), aSearch({ id: "s1", name: "first" })], next: null },
    ];
    const fetched = open({ "/search": () => pages.shift() }, list);
    await vi.waitFor(() => expect(button("Older searches")).toBeDefined());
    button("Older searches").click();
    await vi.waitFor(() => expect(text()).toContain("first"));
    expect(fetched.mock.calls.at(-1)?.[0]).toBe("http://127.0.0.1:8000/search?before=2");
    expect(document.querySelectorAll(".search-card").length).toBe(2);
    expect(button("Older searches")).toBeUndefined();
  });
});

describe("a search", () => {
  it("shows its arms, runs and best program", async () => {
    open(working(), searchPage);
    await vi.waitFor(() => expect(find(".program").textContent).toContain("1 of 2 tests passed"));
    expect(find(".arm").textContent).toContain("0 / 1");
    expect(find(".runs tbody tr").textContent).toContain("0.500");
    expect(find(".runs .reward-row").getAttribute("aria-label")).toBe("1 of 2 tests passed");
    expect(find(".source pre").textContent).toContain("return xs[::-1]");
    expect(find(".verdict-detail").textContent).toContain("t1: wrong answerexpected [2, 1], got [1, 2]");
  });

  it("follows its events, and stops when it is over", async () => {
    const answers = working();
    open(answers, searchPage);
    await vi.waitFor(() => expect(FakeEventSource.all.length).toBe(1));
    const stream = FakeEventSource.all[0] as FakeEventSource;
    expect(stream.url).toBe("http://127.0.0.1:8000/search/s1/events?after=4");
    stream.onopen?.();
    await vi.waitFor(() => expect(find(".live").textContent).toBe("Live"));

    answers["/search/s1"] = aSearch({
      status: "done",
      arms: [anArm({ solved: 1 })],
      runs: [aRun({ status: "done", best: 1, solved_at: 4 })],
    });
    answers["/search/s1/curve"] = { arms: [aCurve({ t: [0, 4], solved: [0, 1], best_at_t: [0, 1], tokens: [0, 9] })] };
    stream.say("search", { search: "s1", status: "done" });
    await vi.waitFor(() => expect(find(".arm").textContent).toContain("1 / 1"), 4000);
    await vi.waitFor(() => expect(stream.readyState).toBe(FakeEventSource.CLOSED));
    expect(button("Cancel search")).toBeUndefined();
  });

  it("says that it reconnects", async () => {
    open(working(), searchPage);
    await vi.waitFor(() => expect(FakeEventSource.all.length).toBe(1));
    FakeEventSource.all[0]?.onerror?.();
    await vi.waitFor(() => expect(find(".live").textContent).toBe("Reconnecting"));
  });

  it("does not follow a search that is over", async () => {
    open(working({ "/search/s1": aSearch({ status: "failed", runs: [aRun({ error: "no such model" })] }) }), searchPage);
    await vi.waitFor(() => expect(find(".error-row").textContent).toBe("no such model"));
    expect(FakeEventSource.all).toEqual([]);
  });

  it("reads exact values by keyboard, on both charts at once", async () => {
    open(working(), searchPage);
    await vi.waitFor(() => expect(document.querySelectorAll('[role="slider"]').length).toBe(2));
    const slider = find('[role="slider"]');
    const press = (key: string) => slider.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    press("ArrowRight");
    press("ArrowRight");
    await vi.waitFor(() => expect(slider.getAttribute("aria-valuetext")).toBe("Iteration 1: vpo 0 / 1 (0.0%)"));
    const readOuts = [...document.querySelectorAll(".read-out")].map((one) => one.textContent);
    expect(readOuts).toEqual(["Iteration 1 vpo0 / 1 (0.0%)", "Iteration 1 vpo0.250"]);
    press("Escape");
    await vi.waitFor(() => expect(document.querySelector(".read-out")).toBeNull());
  });

  it("reads by tokens, too", async () => {
    open(working(), searchPage);
    await vi.waitFor(() => expect(button("Tokens")).toBeDefined());
    button("Tokens").click();
    await vi.waitFor(() => expect(find('[role="slider"]').getAttribute("aria-valuemax")).toBe("900"));
    const slider = find('[role="slider"]');
    slider.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }));
    await vi.waitFor(() => expect(find(".read-out").textContent).toBe("900 tokens vpo0 / 1 (0.0%), t 3"));
    slider.dispatchEvent(new FocusEvent("blur"));
    await vi.waitFor(() => expect(document.querySelector(".read-out")).toBeNull());
  });

  it("hides an arm by its card", async () => {
    open(working(), searchPage);
    await vi.waitFor(() => expect(find(".arm-toggle").getAttribute("aria-pressed")).toBe("true"));
    find(".arm-toggle").click();
    await vi.waitFor(() => expect(find('[role="slider"]').getAttribute("aria-valuetext")).toBe("Iteration 10: "));
  });

  it("asks before it cancels, and shows why it could not", async () => {
    HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
      this.open = true;
    };
    const answers = working({ "/search/s1/cancel": [409, { title: "Over", detail: "the search is done" }] });
    const fetched = open(answers, searchPage);
    await vi.waitFor(() => expect(button("Cancel search")).toBeDefined());
    button("Cancel search").click();
    expect(fetched.mock.calls.some(([, init]) => init?.method === "POST")).toBe(false);
    find("dialog .danger").click();
    await vi.waitFor(() => expect(find("dialog").textContent).toContain("the search is done"));
    answers["/search/s1/cancel"] = aSearch({ status: "cancelled" });
    find("dialog .danger").click();
    await vi.waitFor(() => expect(button("Cancelling…").disabled).toBe(true));
  });

  it("resumes a search that was stopped, and follows it again", async () => {
    const answers = working({
      "/search/s1": aSearch({ status: "cancelled", runs: [aRun({ status: "cancelled" })] }),
      "/search/s1/resume": [409, { title: "Not resumable", detail: "the search is done" }],
    });
    const fetched = open(answers, searchPage);
    await vi.waitFor(() => expect(button("Resume search")).toBeDefined());
    expect(FakeEventSource.all).toEqual([]);
    button("Resume search").click();
    await vi.waitFor(() => expect(find(".resume-problem").textContent).toContain("the search is done"));
    answers["/search/s1/resume"] = aSearch({ status: "queued" });
    answers["/search/s1"] = aSearch({ status: "running" });
    button("Resume search").click();
    await vi.waitFor(() => expect(button("Cancel search")).toBeDefined());
    expect(button("Resume search")).toBeUndefined();
    expect(FakeEventSource.all.length).toBe(1);
    expect(fetched.mock.calls.filter(([, init]) => init?.method === "POST").length).toBe(2);
  });

  it("offers nothing to resume in a search that is done", async () => {
    open(working({ "/search/s1": aSearch({ status: "done" }) }), searchPage);
    await vi.waitFor(() => expect(text()).toContain("held-out problems"));
    expect(button("Resume search")).toBeUndefined();
  });

  it("says which limit ended a run, and what the models cost", async () => {
    const runs = [aRun({ status: "done", ended: "tokens" }), aRun({ id: "r2", status: "done", ended: "completed" })];
    open(working({ "/search/s1": aSearch({ status: "done", runs, arms: [anArm({ cost: 0.00423 })] }) }), searchPage);
    await vi.waitFor(() => expect(find(".run-ended").textContent).toBe("limit of tokens"));
    expect(document.querySelectorAll(".run-ended").length).toBe(1);
    expect(find(".arm").textContent).toContain("Cost0.0042");
    expect(find(".facts").textContent).toContain("Cost0.0042");
  });

  it("chooses a run, by its address, too", async () => {
    const runs = [aRun(), aRun({ id: "r2", task: "p2", best: 0.25 })];
    open(working({ "/search/s1": aSearch({ runs }) }), links.run("s1", "r2"));
    await vi.waitFor(() => expect(find(".program").textContent).toContain("Best program of the run"));
    expect(find(".program-run").textContent).toContain("p2");
    button("p1").click();
    await vi.waitFor(() => expect(find(".program-run").textContent).toContain("p1"));
    expect(location.hash).toBe("#/search/s1/run/r1");
  });

  it("says that there is no such search", async () => {
    open({ "/search/s1": [404, { title: "Not found", detail: "There is no search s1." }] }, searchPage);
    await vi.waitFor(() => expect(text()).toContain("There is no search s1."));
    expect(FakeEventSource.all).toEqual([]);
  });

  it("keeps what it has while the service is away", async () => {
    const answers = working();
    open(answers, searchPage);
    await vi.waitFor(() => expect(FakeEventSource.all.length).toBe(1));
    answers["/search/s1"] = [503, { title: "Away", detail: "start Postgres" }];
    FakeEventSource.all[0]?.say("iteration", {});
    await vi.waitFor(() => expect(find('[role="alert"]').textContent).toContain("start Postgres"), 4000);
    expect(find("h1").textContent).toBe("held-out problems");
  });
});

it("says that there is no such page", () => {
  open({}, "#/nowhere");
  expect(text()).toContain("There is no such page");
});
