{{ config(
    materialized='incremental',
    incremental_strategy='delete+insert',
    unique_key='decided',
    post_hook="{{ write_counts(this, ['sex', 'race', 'approved'], 'decided') }}"
) }}

select cast('{{ var("day") }}' as date) as decided, *
from read_csv('data/{{ var("day") }}.csv', all_varchar = true)
