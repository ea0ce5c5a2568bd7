// What the form of a new job says, as the body of POST /jobs/v1 and as a command line.

import { command, listOf } from "./format";
import type { Job } from "./types";

export const kJobKinds = { application: "Application", script: "Lua script", aggregation: "Aggregation into a type" };
export type JobKind = keyof typeof kJobKinds;

export interface JobForm {
  kind: JobKind;
  type: string;
  selection: string;
  throttle: string;
  /** Of an application; one `name=value` a line. */
  application: string;
  parameters: string;
  script: string;
  groupBy: string;
  aggregates: string;
  having: string;
  into: string;
  intoNamespace: string;
  name: string;
}

/** Returns the form of a job that does the same once more; undefined if the form cannot say it: an aggregation, or several passes. */
export function formAgain(job: Pick<Job, "passes" | "settings">): Partial<JobForm> | undefined {
  const [pass] = job.passes;
  if (!pass || job.passes.length > 1 || pass.application === "aggregate") return undefined;
  const common = { type: pass.type, selection: pass.selection, throttle: job.settings.throttle ?? "" };
  if (pass.application === "script") return { ...common, kind: "script", script: pass.parameters.script ?? "" };
  return { ...common, kind: "application", application: pass.application, parameters: Object.entries(pass.parameters).map(([name, value]) => `${name}=${value}`).join("\n") };
}

/** Returns the parameters of a text with one `name=value` a line. Throws an Error that names the wrong line. */
export function parametersOf(text: string): { [name: string]: string } {
  const parameters: { [name: string]: string } = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`"${line}": expected name=value`);
    const name = line.slice(0, at).trim();
    if (Object.hasOwn(parameters, name)) throw new Error(`the parameter ${name} is there twice`);
    parameters[name] = line.slice(at + 1).trim();
  }
  return parameters;
}

function passOf(form: JobForm) {
  const selection = form.selection ? { selection: form.selection } : {};
  if (form.kind === "aggregation") {
    return {
      aggregation: {
        type: form.type,
        ...selection,
        ...(form.groupBy && { group_by: listOf(form.groupBy) }),
        aggregates: listOf(form.aggregates),
        ...(form.having && { having: form.having }),
        into: form.into,
        ...(form.intoNamespace && { into_namespace: form.intoNamespace }),
        ...(form.name && { name: form.name }),
      },
    };
  }
  if (form.kind === "script") return { script: form.script, type: form.type, ...selection };
  const parameters = parametersOf(form.parameters);
  const some = Object.keys(parameters).length > 0 ? { parameters } : {};
  return { application: form.application, type: form.type, ...selection, ...some };
}

/** Returns the body of POST /jobs/v1. Throws as parametersOf(). */
export function jobRequestOf(form: JobForm) {
  return { passes: [passOf(form)], ...(form.throttle && { settings: { throttle: form.throttle } }) };
}

/** Returns the command that does the same. Throws as parametersOf(). */
export function jobCommandOf(form: JobForm): string {
  const option = (name: string, value: string) => (value ? [name, value] : []);
  const common = ["--type", form.type, ...option("--selection", form.selection)];
  const settings = form.throttle ? ["--set", `throttle=${form.throttle}`] : [];
  if (form.kind === "aggregation") {
    return command("fjord", "aggregate", ...common, ...option("--group-by", form.groupBy), ...option("--having", form.having), "--into", form.into,
      ...option("--into-namespace", form.intoNamespace), ...option("--name", form.name), ...settings, ...listOf(form.aggregates));
  }
  if (form.kind === "script") {
    // The shell reads up to the line with the word, which must not be a line of the script.
    let end = "LUA";
    while (form.script.split("\n").includes(end)) end += "_";
    return `${command("fjord", "job", "run", "script", ...common, "--script", "-", ...settings)} <<'${end}'\n${form.script}\n${end}`;
  }
  const parameters = Object.entries(parametersOf(form.parameters)).flatMap(([name, value]) => ["--param", `${name}=${value}`]);
  return command("fjord", "job", "run", form.application, ...common, ...parameters, ...settings);
}
