/** A small Python lexer for display: it never fails, and joining the texts gives the source back. */

export type TokenKind = "plain" | "comment" | "marker" | "string" | "number" | "keyword" | "builtin" | "name" | "decorator";

export interface Token {
  kind: TokenKind;
  text: string;
}

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break case class continue def del elif else except finally for from " +
    "global if import in is lambda match nonlocal not or pass raise return try while with yield"
  ).split(" "),
);

const BUILTINS = new Set(
  (
    "abs all any bool bytes dict divmod enumerate filter float frozenset int isinstance iter len list map max min next " +
    "object open ord pow print range repr reversed round set sorted str sum super tuple type zip"
  ).split(" "),
);

const LEXEMES = new RegExp(
  [
    String.raw`(?<comment>#[^\n]*)`,
    // Triple-quoted before single-quoted; an unterminated one runs to the end of the text (or line).
    String.raw`(?<string>(?:\b[rRbBuUfF]{1,2})?(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))`,
    String.raw`(?<number>\b(?:0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*)(?:\.[\d_]*)?(?:[eE][+-]?\d+)?j?))`,
    String.raw`(?<decorator>@[A-Za-z_][\w.]*)`,
    String.raw`(?<word>[A-Za-z_]\w*)`,
  ].join("|"),
  "g",
);

export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  let end = 0;
  let previous = "";
  for (const match of source.matchAll(LEXEMES)) {
    if (match.index > end) tokens.push({ kind: "plain", text: source.slice(end, match.index) });
    const text = match[0];
    tokens.push({ kind: kindOf(match.groups ?? {}, text, previous), text });
    end = match.index + text.length;
    previous = text;
  }
  if (end < source.length) tokens.push({ kind: "plain", text: source.slice(end) });
  return tokens;
}

function kindOf(groups: Record<string, string | undefined>, text: string, previous: string): TokenKind {
  if (groups.comment !== undefined) return text.includes("EVOLVE-BLOCK") ? "marker" : "comment";
  if (groups.string !== undefined) return "string";
  if (groups.number !== undefined) return "number";
  if (groups.decorator !== undefined) return "decorator";
  if (KEYWORDS.has(text)) return "keyword";
  if (previous === "def" || previous === "class") return "name";
  return BUILTINS.has(text) ? "builtin" : "plain";
}

/** The tokens of each line, without line ends; tokens that span lines are cut. */
export function lines(source: string): Token[][] {
  const result: Token[][] = [[]];
  for (const token of tokenize(source)) {
    token.text.split("\n").forEach((text, i) => {
      if (i > 0) result.push([]);
      if (text) result[result.length - 1]?.push({ kind: token.kind, text });
    });
  }
  return result;
}
