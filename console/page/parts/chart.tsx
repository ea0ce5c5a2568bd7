// A small chart over time.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { onTheme } from "../lib/theme";

/** Of few points each is shown: one without neighbours has no line. */
const kFewPoints = 40;

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

/** `times`: seconds since 1970. All lines have a value, or null, for each. */
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
  latest.current = data;
  const names = lines.map((line) => line.name).join();

  useEffect(() => {
    const element = box.current!;
    const make = () => {
      plot.current?.destroy();
      const axis = { stroke: colorOf(element, "--quiet"), grid: { stroke: colorOf(element, "--line"), width: 1 },
        ticks: { show: false }, font: "11px system-ui, sans-serif" };
      plot.current = new uPlot({
        width: Math.max(120, element.clientWidth),
        height,
        padding: [8, 8, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high ?? 0) > 0 ? high * 1.08 : 1] } },
        axes: [
          { ...axis, size: 24, space: 60, values: [[60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] },
          { ...axis, size: 58, space: 28, values: (_, ticks) => ticks.map(format) },
        ],
        series: [{}, ...lines.map((line) => ({
          label: line.name,
          stroke: colorOf(element, line.color),
          width: 1.5,
          points: { size: 4, show: () => latest.current[0].length < kFewPoints },
          spanGaps: false,
        }))],
        hooks: { setCursor: [(self) => setPointed(self.cursor.idx ?? null)] },
      }, latest.current, element);
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

  useEffect(() => plot.current?.setData(data), [times, ...lines.map((line) => line.values)]);

  const at = pointed !== null && pointed < times.length ? pointed : times.length - 1;
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={label} />
      <figcaption>
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
