#!/bin/sh
# Run once by PostgreSQL's image in a new database: the engine's role, which is no superuser (row-level security holds
# for it), with a schema of its own. EWE_DB_PASSWORD: its password.
set -eu
psql --set=ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname "$POSTGRES_DB" \
  --set=password="$EWE_DB_PASSWORD" <<'SQL'
CREATE EXTENSION IF NOT EXISTS vector;
CREATE ROLE ewe LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE SCHEMA ewe AUTHORIZATION ewe;
SQL
