"""Runs INSIDE the sandbox: reads sunspots.csv, writes report.xlsx with the years, the solar cycles and two charts."""

import csv
from pathlib import Path

from openpyxl import Workbook
from openpyxl.chart import BarChart, LineChart, Reference
from openpyxl.styles import Font

WORK = Path("/work")


def read_years() -> list[tuple[int, float]]:
    with (WORK / "sunspots.csv").open(newline="") as source:
        return [(int(float(row["year"])), float(row["sunspots"])) for row in csv.DictReader(source)]


def cycles(years: list[tuple[int, float]]) -> list[tuple[int, int, int, float]]:
    """From one minimum to the next: first year, last year, year of the maximum, sunspots at the maximum.

    A minimum is a year with fewer sunspots than the four years on either side: cycles last about eleven years."""
    counts = [count for _, count in years]
    minima = [n for n in range(4, len(counts) - 4) if counts[n] == min(counts[n - 4 : n + 5])]
    found = []
    for start, end in zip(minima, minima[1:], strict=False):
        peak = max(years[start:end], key=lambda row: row[1])
        found.append((years[start][0], years[end - 1][0], *peak))
    return found


def fill(sheet, header: tuple[str, ...], rows) -> None:
    sheet.append(header)
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    for row in rows:
        sheet.append(row)
    for column in "ABCDE"[: len(header)]:
        sheet.column_dimensions[column].width = 16


def chart(kind, sheet, *, title: str, column: int, labels: int):
    drawn = kind()
    drawn.title, drawn.height, drawn.width, drawn.legend = title, 9, 24, None
    drawn.add_data(Reference(sheet, min_col=column, min_row=1, max_row=sheet.max_row), titles_from_data=True)
    drawn.set_categories(Reference(sheet, min_col=labels, min_row=2, max_row=sheet.max_row))
    return drawn


def main() -> None:
    years = read_years()
    book = Workbook()
    per_year = book.active
    per_year.title = "Years"
    fill(per_year, ("Year", "Sunspots"), years)
    per_year.add_chart(chart(LineChart, per_year, title="Sunspots a year", column=2, labels=1), "D2")
    per_cycle = book.create_sheet("Cycles")
    found = cycles(years)
    fill(per_cycle, ("First year", "Last year", "Maximum in", "Sunspots then"), found)
    per_cycle.add_chart(chart(BarChart, per_cycle, title="Maximum of each cycle", column=4, labels=3), "F2")
    book.save(WORK / "report.xlsx")
    highest = max(found, key=lambda cycle: cycle[3])
    print(f"{len(years)} years, {len(found)} whole cycles, highest maximum {highest[3]} in {highest[2]}")


main()
