#!/bin/sh
# Usage: sh run.sh 2026-11-19
set -eu
day="$1"
mkdir -p counts
dbt run --quiet --vars "{day: '$day'}"
equipoise monitor add "counts/applications-$day.parquet" --count n --id "$day" --at "$day"
equipoise monitor check || [ $? -eq 3 ]
