{# Write the number of rows in each cell for one day. Equipoise needs nothing else. #}
{% macro write_counts(relation, columns, day_column) %}
copy (
    select {{ columns | join(', ') }}, count(*) as n
    from {{ relation }}
    where {{ day_column }} = cast('{{ var("day") }}' as date)
    group by {{ columns | join(', ') }}
) to 'counts/{{ relation.identifier }}-{{ var("day") }}.parquet' (format parquet)
{% endmacro %}
