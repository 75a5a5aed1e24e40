import { render } from "preact";
import "./style.css";
import { App } from "./app";
import { refreshTheme } from "./plot/theme";

refreshTheme();
render(<App />, document.getElementById("app")!);
