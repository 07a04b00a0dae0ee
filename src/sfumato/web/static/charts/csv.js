// Rows as CSV.

// What a spreadsheet would run as a formula is marked as text.
const cell = (value) => {
  const text = String(value ?? "");
  const plain = /^[=+@]|^-(?!\d)/.test(text) ? `'${text}` : text;
  return /[",\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};

/** @param {any[][]} rows */
export const csvText = (rows) => rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
