/** Numbers and times as people read them. */

const money = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 1234567 → "1,234,567". */
export const count = (value: number): string => grouped.format(value);

const UNITS: readonly [number, string][] = [
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "k"],
];

/** 950 → "950", 12_340 → "12.3k": three significant digits at most. */
export function compact(value: number): string {
  for (const [size, unit] of UNITS) {
    // 999,950 would print as "1000k": round up into the next unit.
    if (value >= size * 0.9995) return `${trimmed(value / size)}${unit}`;
  }
  return trimmed(value);
}

function trimmed(value: number): string {
  const digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

/** An amount of money without its currency: 12.345 → "12.35", 0.00423 → "0.0042". */
export const cost = (value: number): string =>
  value >= 1 ? money.format(value) : String(Number(value.toPrecision(2)));

/** A value of [0, 1] with three decimals; 1 only for exactly 1, so that "almost solved" never reads as solved. */
export function scalar(value: number): string {
  if (value < 1 && value >= 0.9995) return "0.999";
  return value.toFixed(3);
}

export const percent = (value: number): string => `${(100 * value).toFixed(1)}%`;

const STEPS: readonly [number, Intl.RelativeTimeFormatUnit][] = [
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** "3 minutes ago". */
export function ago(moment: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(moment)) / 1000);
  for (const [size, unit] of STEPS) {
    if (seconds >= size) return relative.format(-Math.floor(seconds / size), unit);
  }
  return seconds < 5 ? "just now" : relative.format(-Math.floor(seconds), "second");
}

/** 4 → "4 s", 75 → "1 min 15 s", 7_500 → "2 h 5 min". */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return pair(Math.floor(whole / 60), "min", whole % 60, "s");
  return pair(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");
}

const pair = (large: number, largeUnit: string, small: number, smallUnit: string): string =>
  small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;

/** "1 run", "2 runs". */
export const plural = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** "2026-11-30 05:21:14" in the reader's time zone. */
export function timestamp(moment: string): string {
  const at = new Date(moment);
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
