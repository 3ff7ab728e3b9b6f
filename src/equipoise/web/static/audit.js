// Audit forms: the form on the left, what it says on the right.
import { start } from "./room.js";

start(() => {});
