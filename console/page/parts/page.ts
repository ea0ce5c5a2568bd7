export interface PageProps {
  parameters: URLSearchParams;
  /** Documents may be changed here. */
  edits: boolean;
}
