// A small chart over time, in steps: each value is that of the time since the one before.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { onTheme } from "../lib/theme";

const kSeconds = 600;
/** Distances of the marks of the time axis, whole seconds, so that no two have the same text. */
const kSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];

export interface Line {
  name: string;
  values: (number | null)[];
  /** A variable of style.css with the colour. */
  color: string;
}

function colorOf(element: HTMLElement, variable: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${variable})`;
  element.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

const clock = new Intl.DateTimeFormat("sv", { timeStyle: "medium" });

/** Returns the part of the time that is shown: what is known of the last ten minutes, and a minute at least. */
export function windowOf(times: number[]): [number, number] {
  const last = times.at(-1) ?? kSeconds;
  return [Math.max(last - kSeconds, Math.min(times[0] ?? 0, last - 60)), last];
}

/** Returns a time of the axis: with seconds if its marks are closer than a minute. */
export function axisText(seconds: number, step: number): string {
  return clock.format(new Date(seconds * 1000)).slice(0, step < 60 ? 8 : 5);
}

/** Returns how the chart looks. `isZoomed`: a part of the time was chosen, which data that come do not move. */
function optionsOf(element: HTMLElement, height: number, lines: Line[], format: (value: number) => string, isZoomed: { current: boolean },
  onPoint: (at: number | null) => void): uPlot.Options {
  const axis = { stroke: colorOf(element, "--quiet"), grid: { stroke: colorOf(element, "--line"), width: 1 },
    ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width: Math.max(120, element.clientWidth),
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false } },
    scales: {
      x: { range: (self, low, high) => (isZoomed.current ? [low, high] : windowOf(self.data[0] as number[])) },
      y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high ?? 0) > 0 ? high * 1.08 : 1] },
    },
    axes: [
      { ...axis, size: 24, space: 64, incrs: kSteps, values: (_self, ticks, _axis, _space, step) => ticks.map((tick) => axisText(tick, step)) },
      { ...axis, size: 58, space: 28, values: (_, ticks) => ticks.map(format) },
    ],
    series: [{}, ...lines.map((line) => ({
      label: line.name,
      stroke: colorOf(element, line.color),
      width: 1.5,
      paths: uPlot.paths.stepped!({ align: -1 }),
      points: { show: false },
      spanGaps: false,
    }))],
    hooks: {
      setCursor: [(self) => onPoint(self.cursor.idx ?? null)],
      setSelect: [(self) => { isZoomed.current = self.select.width > 0; }],
    },
  };
}

/** `times`: seconds since 1970. All lines have a value, or null, for each. A drag with the pointer shows a part of the time, with a
 * scale of its own; a double click shows all again. */
export function Chart({ times, lines, format, height = 120, label }: {
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  height?: number;
  label: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const data = [times, ...lines.map((line) => line.values)] as uPlot.AlignedData;
  const latest = useRef(data);
  const isZoomed = useRef(false);
  latest.current = data;
  const names = lines.map((line) => line.name).join();

  useEffect(() => {
    const element = box.current!;
    const make = () => {
      plot.current?.destroy();
      isZoomed.current = false;
      plot.current = new uPlot(optionsOf(element, height, lines, format, isZoomed, setPointed), latest.current, element);
    };
    make();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(120, element.clientWidth), height }));
    resized.observe(element);
    const unlisten = onTheme(make);
    return () => {
      unlisten();
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names, height]);

  useEffect(() => {
    plot.current?.setData(data, !isZoomed.current);
    if (isZoomed.current) plot.current?.redraw();
  }, [times, ...lines.map((line) => line.values)]);

  const at = pointed !== null && pointed < times.length ? pointed : times.length - 1;
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={label} onDblClick={() => {
        isZoomed.current = false;
        plot.current?.setData(latest.current);
      }} />
      <figcaption>
        {times[at] !== undefined && <time>{clock.format(new Date(times[at]! * 1000))}</time>}
        {lines.map((line) => (
          <span key={line.name}>
            <i style={{ background: `var(${line.color})` }} aria-hidden="true" />{line.name}{" "}
            <b>{line.values[at] == null ? "–" : format(line.values[at]!)}</b>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
