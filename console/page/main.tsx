import { render } from "preact";
import { App } from "./app";
import { apply, theme } from "./lib/theme";

apply(theme());
const root = document.getElementById("app")!;
root.replaceChildren();
render(<App />, root);
