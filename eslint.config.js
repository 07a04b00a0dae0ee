// What eslint looks for in the workbench's JavaScript. Names that do not exist are found by tsc, layout by prettier.
import js from "@eslint/js";

export default [
  { ignores: ["src/sfumato/samples/**", "docs/**", "build/**", ".venv/**", "tests/web/access.js"] },
  js.configs.recommended,
  {
    rules: {
      "no-undef": "off", // tsc knows the names of the browser
      "no-unused-vars": ["error", { ignoreRestSiblings: true }],
      "no-var": "error",
      "prefer-const": "error",
      eqeqeq: "error",
      "no-shadow": "error",
      "no-implicit-coercion": ["error", { allow: ["+", "!!"] }],
      "max-len": ["error", { code: 120, ignoreUrls: true }],
      "max-lines": ["error", 400],
    },
  },
];
