import { render } from "preact";
import "./style.css";
import { arrive } from "./api/session";
import { App } from "./app";
import { refreshTheme } from "./plot/theme";

refreshTheme();
await arrive();
render(<App />, document.getElementById("app")!);
