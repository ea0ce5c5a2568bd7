// Tables: rows and columns on a wide page, a card for each row on a telephone.

import { Fragment, type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isNumber } from "../lib/json";
import { Empty } from "./basic";

export interface Column<Row> {
  /** The heading; of a telephone's card the name beside the cell. */
  name: string;
  /** Right-aligned. */
  isNumber?: boolean;
  /** Sentences: not squeezed by other columns. */
  isText?: boolean;
  /** Shown on a wide screen and on a telephone's card only. */
  isWideOnly?: boolean;
  /** What the rows can be sorted by with a click on the heading; absent: the column does not sort. */
  by?: (row: Row) => unknown;
  cell: (row: Row) => ComponentChildren;
}

/** Orders numbers by value, then texts, then what is not there. */
export function compare(a: unknown, b: unknown): number {
  const kind = (value: unknown) => (isNumber(value) ? 0 : value === null || value === undefined ? 2 : 1);
  if (kind(a) !== kind(b)) return kind(a) - kind(b);
  // A comparison of a number with one of many digits is exact: these are compared as BigInt.
  if (kind(a) === 0) return (a as number) < (b as number) ? -1 : (a as number) > (b as number) ? 1 : 0;
  return kind(a) === 2 ? 0 : String(a).localeCompare(String(b), "en");
}

interface Order {
  column: string;
  isDown: boolean;
}

function sorted<Row>(rows: Row[], columns: Column<Row>[], order: Order | undefined): Row[] {
  const by = columns.find((column) => column.name === order?.column)?.by;
  if (!by || !order) return rows;
  const known = (row: Row) => by(row) !== null && by(row) !== undefined;
  return rows.toSorted((a, b) => (known(a) && known(b) && order.isDown ? -1 : 1) * compare(by(a), by(b)));
}

function Heading<Row>({ column, order, onOrder }: { column: Column<Row>; order: Order | undefined; onOrder: (order: Order) => void }) {
  if (!column.by) return <>{column.name}</>;
  const isThis = order?.column === column.name;
  const mark = !isThis ? "" : order.isDown ? " ↓" : " ↑";
  // Numbers are mostly wanted largest first.
  const next = { column: column.name, isDown: isThis ? !order.isDown : Boolean(column.isNumber) };
  return <button type="button" class="heading" title="Sort by this column" onClick={() => onOrder(next)}>{column.name}{mark}</button>;
}

interface Place<Row> {
  row: Row;
  index: number;
  /** The heading above the row, if it is the first of its section. */
  section: ComponentChildren;
}

/** Puts the rows of each section together, in the order in which the sections come first. */
function sections<Row>(rows: Row[], sectionOf: ((row: Row) => ComponentChildren) | undefined): Place<Row>[] {
  if (!sectionOf) return rows.map((row, index) => ({ row, index, section: undefined }));
  const groups = new Map<ComponentChildren, Row[]>();
  for (const row of rows) {
    const section = sectionOf(row);
    groups.set(section, [...(groups.get(section) ?? []), row]);
  }
  return [...groups].flatMap(([section, group]) => group.map((row, at) => ({ row, index: rows.indexOf(row), section: at === 0 ? section : undefined })));
}

export function Table<Row>({ rows, columns, keyOf, empty, label, sectionOf, onOpen }: {
  rows: Row[];
  columns: Column<Row>[];
  keyOf: (row: Row, index: number) => string;
  empty?: string;
  label: string;
  /** The heading above a row and those that follow it with the same one; all rows of one heading stand together. */
  sectionOf?: (row: Row) => ComponentChildren;
  /** Rows can be clicked. The first cell should have a link or a button that does the same for the keyboard. */
  onOpen?: (row: Row) => void;
}) {
  const [order, setOrder] = useState<Order>();
  if (rows.length === 0) return <Empty>{empty ?? "None."}</Empty>;
  const classOf = (column: Column<Row>) => `${column.isNumber ? "number" : ""} ${column.isText ? "text" : ""} ${column.isWideOnly ? "wideonly" : ""}`;
  const sortOf = (column: Column<Row>) => (column.name !== order?.column ? undefined : order.isDown ? "descending" : "ascending");
  // The cards of a telephone are no table for a browser, so that the roles say what they are.
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table role="table">
        <thead><tr role="row">{columns.map((column, at) => (
          <th key={at} role="columnheader" scope="col" class={classOf(column)} aria-sort={sortOf(column)}>
            <Heading column={column} order={order} onOrder={setOrder} />
          </th>
        ))}</tr></thead>
        <tbody>
          {sections(sorted(rows, columns, order), sectionOf).map(({ row, index, section }) => <Fragment key={keyOf(row, index)}>
            {section && <tr role="row" class="section">
              <th role="rowheader" scope="rowgroup" colSpan={columns.length}>{section}</th>
            </tr>}
            <tr role="row" class={onOpen ? "open" : ""} onClick={onOpen && ((event) => {
              if ((event.target as Element).closest("a, button, input, select")) return;
              // A dialog that the row opens gives the focus back to it.
              event.currentTarget.querySelector<HTMLElement>("a, button")?.focus();
              onOpen(row);
            })}>
              {columns.map((column, at) => <td key={at} role="cell" data-name={column.name} class={classOf(column)}><div class="cell">{column.cell(row)}</div></td>)}
            </tr>
          </Fragment>)}
        </tbody>
      </table>
    </div>
  );
}
