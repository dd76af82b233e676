import { describe, expect, it } from "vitest";
import { lines, tokenize } from "../src/text/python";

const kinds = (source: string) =>
  tokenize(source)
    .filter((token) => token.kind !== "plain")
    .map((token) => `${token.kind}:${token.text}`);

describe("tokenize", () => {
  it("knows the parts of a function", () => {
    expect(kinds("@cache\ndef f(xs):\n    return sum(xs) + 0x1f  # all")).toEqual([
      "decorator:@cache",
      "keyword:def",
      "name:f",
      "keyword:return",
      "builtin:sum",
      "number:0x1f",
      "comment:# all",
    ]);
  });

  it("sees keywords and comment signs in strings as text", () => {
    expect(kinds(`x = "def # no" + r'\\d' + f"""a\n# b"""`)).toEqual([
      'string:"def # no"',
      "string:r'\\d'",
      'string:f"""a\n# b"""',
    ]);
  });

  it("marks the block that evolves", () => {
    expect(kinds("# EVOLVE-BLOCK-START")).toEqual(["marker:# EVOLVE-BLOCK-START"]);
  });

  it("does not take digits or keywords out of names", () => {
    expect(kinds("x2 = in_list + sorted_")).toEqual([]);
  });

  it.each(["", "'open", '"""never closed\n', "a\\\n'b\\'", "é = 'ü' # ß", "1_000.5e-3j", "\t\r\n@"])(
    "gives every source back: %j",
    (source) => {
      expect(tokenize(source).map((token) => token.text).join("")).toBe(source);
    },
  );
});

it("cuts tokens at line ends", () => {
  const rows = lines('a = """x\ny"""\n');
  expect(rows.map((row) => row.map((token) => token.text).join(""))).toEqual(['a = """x', 'y"""', ""]);
  expect(rows[1]?.[0]?.kind).toBe("string");
});
