"""The sheets of the workbook, one module each; `formats.xlsx` puts them together."""
