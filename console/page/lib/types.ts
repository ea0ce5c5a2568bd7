// The answers of the gateway that the pages use. test/console/answers.py compares them with gateway/http/openapi.yaml.

/** openapi.yaml: Error */
export interface Failure {
  message: string;
  code?: string;
  node?: string;
  limit?: string;
  setting?: string;
}

export interface About {
  version: string;
  revision: string;
  gateway: string;
  edits: boolean;
}

/** openapi.yaml: Node */
export interface ClusterNode {
  name: string;
  role: "storage" | "distributor" | "fleetcontroller" | "gateway";
  address: string;
  state: string;
  reason: string;
  wanted: string;
  group: string;
  capacity: string;
  slow: string;
  space: string;
  space_stage: number;
  buckets: number;
  documents: number;
  bytes: number;
  state_version: number;
  config_version: number;
  answered_seconds_ago: number | null;
  maintenance_seconds: number | null;
  maintenance_seconds_left: number | null;
}

/** openapi.yaml: ClusterStatus.buckets */
export interface BucketCounts {
  total: number;
  in_sync: number;
  out_of_sync: number;
  collecting: number;
  unavailable: number;
  damaged: number;
  failing: number;
  unplaced: number;
  under_replicated: number;
}

/** openapi.yaml: ClusterStatus */
export interface ClusterStatus {
  health: "healthy" | "degraded" | "unavailable";
  reasons: string[];
  notes: string[];
  state_version: number;
  schema_version: number;
  config_version: number;
  state: string;
  distribution: string;
  buckets: BucketCounts;
  document_replicas: number;
  bytes: number;
  nodes_without_space: number;
  nodes: ClusterNode[];
}

/** openapi.yaml: Load.points */
export interface LoadPoint {
  unix_us: number;
  reads_per_second: number;
  writes_per_second: number;
  p50_seconds: number | null;
  p99_seconds: number | null;
}

/** openapi.yaml: Load.operations */
export interface OperationLoad {
  operation: string;
  per_second: number;
  p50_seconds: number | null;
  p99_seconds: number | null;
}

/** openapi.yaml: Load.nodes */
export interface NodeLoad {
  node: string;
  cpus: number | null;
  resident_bytes: number | null;
  operations_per_second: number | null;
  p99_seconds: number | null;
  visitors: number | null;
  used_bytes: number | null;
  free_bytes: number | null;
  limit_bytes: number | null;
  growth_bytes_per_second: number | null;
  seconds_until_full: number | null;
}

/** openapi.yaml: Load */
export interface Load {
  period_seconds: number | null;
  silent: string[];
  operations: OperationLoad[];
  points: LoadPoint[];
  nodes: NodeLoad[];
  growth_seconds: number | null;
}

/** openapi.yaml: ClusterState */
export interface ClusterState {
  state: string;
  distribution: string;
  pending_state: string;
  pending_distribution: string;
  waits_for: string;
  leader: string;
  term: number;
  schema_version: number;
  config_version: number;
}

/** openapi.yaml: StateChange */
export interface StateChange {
  version: number;
  term: number;
  unix_us: number;
  active_unix_us: number;
  what: string;
  why: string;
  who: string;
}

/** openapi.yaml: Replica */
export interface Replica {
  node: string;
  state: string;
  is_member: boolean;
  is_damaged: boolean;
  error?: Failure;
  bucket: string;
  epoch: string;
  documents: number;
  entries: number;
  bytes: number;
  checksum: string;
  newest_unix_us: number;
  document?: { version_unix_us: number | null; checksum: string; removed_unix_us: number; error?: Failure };
}

/** openapi.yaml: Bucket */
export interface Bucket {
  bucket: string;
  bits: number;
  distributor: string;
  state_version: number;
  state: string;
  reason: string;
  epoch: string;
  replica_set: string[];
  replicas: Replica[];
}

/** openapi.yaml: UnhealthyBuckets.buckets */
export interface UnhealthyBucket {
  bucket: string;
  state: string;
  reason: string;
  members: string[];
  damaged: string[];
  catching_up: string[];
}

/** openapi.yaml: UnhealthyBuckets */
export interface UnhealthyBuckets {
  buckets: UnhealthyBucket[];
  silent: string[];
  more: boolean;
}

/** openapi.yaml: DocumentType.fields */
export interface Field {
  name: string;
  type: string;
  header: boolean;
  index?: string;
}

/** openapi.yaml: DocumentType */
export interface DocumentType {
  name: string;
  inherits: string[];
  keep_while?: string;
  fields: Field[];
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = { [name: string]: Json };

export interface StoredDocument {
  id: string;
  fields?: Fields;
}

export interface Chunk {
  documents: StoredDocument[];
  documentCount: number;
  continuation?: string;
}

/** openapi.yaml: Setting */
export interface Setting {
  name: string;
  type: string;
  default: string;
  min: string;
  max: string;
  value: string;
  source: string;
  live_value: string;
  elsewhere: string[];
  used_by: string;
  meaning: string;
}

/** openapi.yaml: Settings */
export interface Settings {
  version: number;
  settings: Setting[];
  waiting: string[];
  errors: string[];
}

/** openapi.yaml: SettingsVersion */
export interface SettingsVersion {
  version: number;
  unix_us: number;
  who: string;
  values: { [name: string]: string };
}

export interface SettingsChange {
  version: number;
  changes: string[];
}

/** openapi.yaml: NodePlan */
export interface NodePlan {
  done: boolean;
  refusals: string[];
  warnings: string[];
  nodes: string[];
  state_version: number;
  buckets_total: number;
  buckets_moved: number;
  replicas_moved: number;
  bytes_moved: number;
  duration_seconds: number;
  notes: string[];
}

/** openapi.yaml: NodeProgress */
export interface NodeProgress {
  known: boolean;
  in_force: boolean;
  waits_for: string[];
  buckets_left: number;
  fraction_done: number | null;
  seconds_left: number | null;
}

export type Cell = null | number | string | boolean | Json;

export interface AggregateAnswer {
  job: string;
  columns: string[];
  rows: Cell[][];
  documents_read: number;
  dead_letters: number;
  documents_put: number;
  documents_removed: number;
  buckets: number;
  buckets_read: number;
}

/** openapi.yaml: JobPass */
export interface JobPass {
  state: string;
  application: string;
  type: string;
  selection: string;
  parameters: { [name: string]: string };
  into: { type: string; namespace: string; name: string };
  shuffle: string;
  map_tasks: number;
  map_tasks_done: number;
  reduce_tasks: number;
  reduce_tasks_done: number;
  tasks_repeated: number;
  documents_read: number;
  documents_reused: number;
  bytes_read: number;
  dead_letters: number;
  tuples: number;
  sent_bytes: number;
  spilled_bytes: number;
  results: number;
  documents_put: number;
  documents_removed: number;
}

/** openapi.yaml: Job */
export interface Job {
  job: string;
  state: "queued" | "running" | "paused" | "orphaned" | "done" | "failed" | "cancelled";
  phase: string;
  error: Failure | null;
  passes: JobPass[];
  passes_done: number;
  fraction_done: number;
  seconds_left: number | null;
  seconds_left_error: number | null;
  bound_by: string;
  dead_letters: number;
  documents_read: number;
  settings: { [name: string]: string };
  output_namespace: string;
  owner: string;
  live: boolean;
  recorded: boolean;
  taken_over: number;
  busy_seconds: number;
  processor_seconds: number;
  submitted_unix_us: number;
  finished_unix_us: number;
  results_until_unix_us: number;
  results_removed: boolean;
}

export interface DeadLetter {
  document: string;
  error: string;
}

/** openapi.yaml: JobResult */
export interface JobResult {
  key: string;
  value: Json;
}

/** openapi.yaml: TuningAdvice.advice */
export interface AdviceRow {
  name: string;
  old_text: string;
  new_text: string;
  new: number | string;
  place: string;
  reason: string;
  source: string;
  formula: string;
  inputs: string;
  binding: string;
  effect: null | { low: number; high: number; gain: number; text: string; sensitive_to: string };
  may_be_applied: boolean;
  why_not: string;
}

/** openapi.yaml: TuningAdvice */
export interface Advice {
  inputs: { name: string; value: number; unit: string; origin: string }[];
  advice: AdviceRow[];
  kept: { name: string; value_text: string; considered_text: string; why: string }[];
  figures: { name: string; value: number; unit: string; source: string; formula: string }[];
  warnings: string[];
  moved_bytes: number;
  moved_seconds: number;
}

/** openapi.yaml: TuningChange */
export interface TuningChange {
  id: string;
  is_revert: boolean;
  version: number;
  unix_us: number;
  who: string;
  values: { name: string; before: string; after: string }[];
}

/** openapi.yaml: BalancerStatus */
export interface BalancerStatus {
  mode: "off" | "advise" | "on";
  algorithm: string;
  unit: string;
  imbalance: number | null;
  doing: string;
  waits_for: string[];
  state_version: number;
  rows: number;
  rows_max: number;
  round: number;
  round_age_seconds: number | null;
  moves_seconds_left: number;
  nodes: { node: string; load: number; over_mean: number; reads_per_s: number; writes_per_s: number; bytes: number; note: string }[];
}

/** openapi.yaml: BucketMove */
export interface Move {
  bucket: string;
  from: string;
  to: string;
  bytes: number;
  load: number;
  reason: string;
  read_part: number;
}

/** openapi.yaml: BalancePlan */
export interface BalancePlan {
  state_version: number;
  algorithm: string;
  moves: Move[];
  bytes: number;
  duration_seconds: number;
  imbalance_before: number;
  imbalance_after: number;
  rows: number;
  notes: string[];
  refusals: string[];
}

/** openapi.yaml: BalanceStep */
export interface BalanceStep {
  step: number;
  kind: string;
  unix_us: number;
  state_version: number;
  moves: Move[];
  bytes: number;
  imbalance_before: number | null;
  imbalance_after: number | null;
  who: string;
  why: string;
  reverts: number;
}
