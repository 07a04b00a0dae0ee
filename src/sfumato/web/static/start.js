// A browser that came with a key: keep the secret of its session in this tab, and go to the page.
import { keep } from "./session.js";

keep(/** @type {HTMLMetaElement} */ (document.querySelector("meta[name=session]")).content);
location.replace("/");
