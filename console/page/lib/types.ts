// The answers of the gateway that the pages use. Their types are made from gateway/http/openapi.yaml by the build.

import type { components, operations } from "../../openapi";
import type { Json } from "./json";

type Schemas = components["schemas"];
/** The JSON of the answer 200 of an operation. */
type AnswerOf<Name extends keyof operations> =
  operations[Name] extends { responses: { 200: { content: { "application/json": infer Body } } } } ? Body : never;

/** What the gateway says of a failed request; without a code if something in between has answered. */
export type Failure = Omit<Schemas["Error"], "code"> & { code?: string };

export type About = AnswerOf<"getConsoleAbout">;

export type ClusterStatus = Schemas["ClusterStatus"];
export type ClusterNode = Schemas["Node"];
export type Load = Schemas["Load"];
export type NodeLoad = Load["nodes"][number];
export type ClusterState = Schemas["ClusterState"];
export type StateChange = Schemas["StateChange"];

export type Bucket = Schemas["Bucket"];
export type Replica = Schemas["Replica"];
export type UnhealthyBuckets = Schemas["UnhealthyBuckets"];

export type DocumentType = Schemas["DocumentType"];

export type Fields = { [name: string]: Json };
export type StoredDocument = Pick<Schemas["Document"], "id"> & { fields?: Fields };
export type Chunk = Omit<AnswerOf<"visitCluster">, "documents" | "pathId"> & { documents: StoredDocument[] };

export type Setting = Schemas["Setting"];
export type Settings = Schemas["Settings"];
export type SettingsVersion = Schemas["SettingsVersion"];
export type SettingsChange = AnswerOf<"changeSettings">;

export type NodePlan = Schemas["NodePlan"];
export type NodeProgress = Schemas["NodeProgress"];

export type Cell = Json;
export type AggregateAnswer = Omit<Schemas["Aggregate"], "rows"> & { rows: Cell[][] };

export type Job = Schemas["Job"];
export type JobPass = Schemas["JobPass"];
export type DeadLetter = AnswerOf<"getDeadLetters">["dead_letters"][number];
export type JobResult = Schemas["JobResult"] & { value: Json };

export type Advice = Schemas["TuningAdvice"];
export type AdviceRow = Advice["advice"][number];
export type TuningInput = Schemas["TuningInput"];
export type TuningChange = Schemas["TuningChange"];

export type BalancerStatus = Schemas["BalancerStatus"];
export type Slice = Schemas["Slice"];
export type HotSlices = AnswerOf<"getSlices">;
export type Move = Schemas["BucketMove"];
export type BalancePlan = Schemas["BalancePlan"];
export type BalanceStep = Schemas["BalanceStep"];
