import { expect, it } from "vitest";
import { links, parse } from "../src/router";

it.each([
  ["", { page: "list" }],
  ["#/", { page: "list" }],
  ["#/search", { page: "list" }],
  ["#/search/7", { page: "search", id: "7", run: undefined }],
  ["#/search/7/run/9", { page: "search", id: "7", run: "9" }],
  ["#/search/7/run", { page: "unknown", path: "/search/7/run" }],
  ["#/nowhere", { page: "unknown", path: "/nowhere" }],
])("reads %j", (hash, route) => expect(parse(hash)).toEqual(route));

it("reads what it writes, whatever the ids are", () => {
  expect(parse(links.search("a/b c"))).toEqual({ page: "search", id: "a/b c", run: undefined });
  expect(parse(links.run("ä", "%"))).toEqual({ page: "search", id: "ä", run: "%" });
});

it("survives a broken escape", () => {
  expect(parse("#/search/%E0%A4%A")).toEqual({ page: "search", id: "%E0%A4%A", run: undefined });
});
