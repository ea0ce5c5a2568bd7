// What the pages say of a job.

import { duration, percent } from "../lib/format";
import type { Job } from "../lib/types";
import { Bar } from "./basic";

export const hasEnded = (job: Job) => job.state === "done" || job.state === "failed" || job.state === "cancelled";

/** Returns what a job does, in a few words. */
export function jobName(job: Job): string {
  const pass = job.passes[0];
  if (!pass) return job.job;
  const more = job.passes.length > 1 ? `, ${job.passes.length} passes` : "";
  return `${pass.application} on ${pass.type || "rows"}${more}`;
}

export function JobProgress({ job }: { job: Job }) {
  const left = job.seconds_left === null || hasEnded(job) ? "" : `about ${duration(job.seconds_left)} left`;
  return (
    <>
      <span class="nowrap"><Bar share={job.fraction_done} label={`${percent(job.fraction_done)} done`} /> {percent(job.fraction_done)}</span>
      {left && <div class="quiet">{left}</div>}
    </>
  );
}
