// JSON whose numbers keep their digits: a document may have 64-bit integers, which a number of JavaScript rounds beyond 2^53.

import { isLosslessNumber, LosslessNumber, parse, splitNumber, stringify } from "lossless-json";

/** A number that JavaScript cannot hold, as its text. */
export type Digits = LosslessNumber;
export type Json = null | boolean | number | Digits | string | Json[] | { [name: string]: Json };

/** Significant digits that say which double a number is; gateways write no more. */
const kDoubleDigits = 17;

/** Fractions are doubles in Fjord, too, so that they are read and written without a change. */
function isHeld(text: string, value: number): boolean {
  if (!Number.isFinite(value) || Object.is(value, -0)) return false;
  return /[.eE]/.test(text) ? splitNumber(text).digits.length <= kDoubleDigits : Number.isSafeInteger(value);
}

function numberOf(text: string): number | Digits {
  const value = Number(text);
  return isHeld(text, value) ? value : new LosslessNumber(text);
}

/** Reads JSON. Throws SyntaxError, also if an object has a name twice with different values. */
export function readJson(text: string): unknown {
  return parse(text, null, numberOf);
}

/** Returns JSON with the digits that were read. `space`: of each level of indentation. */
export function writeJson(value: unknown, space?: number): string {
  return stringify(value, null, space) ?? "null";
}

export function isNumber(value: unknown): value is number | Digits {
  return typeof value === "number" || isLosslessNumber(value);
}

const kGrouped = new Intl.NumberFormat("en", { maximumFractionDigits: 6, useGrouping: "min2" });

/** Returns a stored or computed number for people: integers with all digits, fractions with at most six behind the point. */
export function numberText(value: number | Digits): string {
  if (typeof value === "number") return kGrouped.format(value);
  return /^-?\d+$/.test(value.value) && value.value !== "-0" ? kGrouped.format(BigInt(value.value)) : value.value;
}
