/* SPDX-License-Identifier: Apache-2.0 */
/* In `monkey test`, each test has an empty schema of the database. These functions block, and do nothing outside
 * of tests. */
#ifndef DUDA_POSTGRES_TEST_SCHEMA_H
#define DUDA_POSTGRES_TEST_SCHEMA_H

#include "conn_type.h"

/* Creates the schema, and sets `settings->test_schema`. Reports an error and returns false if the database does
 * not allow that: the test must not use another schema. */
bool postgres_test_schema_create(struct mk_config *config, struct postgres_settings *settings);
void postgres_test_schema_drop(const struct postgres_settings *settings);

#endif
