// What the pages say of a job.

import { duration, percent, plural } from "../lib/format";
import type { Job } from "../lib/types";
import { Bar, State, toneOf } from "./basic";

export const hasEnded = (job: Job) => job.state === "done" || job.state === "failed" || job.state === "cancelled";

/** The state in a word with its colour: a job that has left documents out is not simply done. */
export function JobState({ job }: { job: Job }) {
  if (job.state !== "done" || job.dead_letters === 0) return <State tone={toneOf(job.state)}>{job.state}</State>;
  return <State tone="warn">done, {plural(job.dead_letters, "dead letter")}</State>;
}

/** Returns what a job waits for, in words; empty if that is not known or says no more than its state. */
export function boundBy(job: Job): string {
  return hasEnded(job) || job.state === "paused" ? "" : job.bound_by;
}

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
