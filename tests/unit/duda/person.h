/* SPDX-License-Identifier: Apache-2.0 */
/* A struct with a member of each type, and its schema. */
#ifndef MK_UNIT_DUDA_PERSON_H
#define MK_UNIT_DUDA_PERSON_H

#include <duda/json.h>

struct person_address {
    mk_str street;
    double rent;
};

struct person {
    mk_str name;
    unsigned age;
    bool admin, has_place;
    signed char mood;
    int color;
    struct person_address place;
    mk_str *tags;
    size_t n_tags;
    struct person_address *places;
    size_t n_places;
    int64_t *numbers;
    size_t n_numbers;
    mk_str raw;
    uint64_t big;
};

static const char *const person_colors[] = {"red", "green", NULL};

static const struct duda_schema_field person_place_members[] = {
    DUDA_STRING(struct person_address, street),
    DUDA_DOUBLE(struct person_address, rent, .optional = true, DUDA_MINIMUM(0.5), DUDA_MAXIMUM(99)),
};
static const struct duda_schema person_place_shape = DUDA_SCHEMA(struct person_address, person_place_members);

static const struct duda_schema_field person_members[] = {
    DUDA_STRING(struct person, name, .min_length = 1, .max_length = 10),
    DUDA_INTEGER(struct person, age, DUDA_MAXIMUM(150)),
    DUDA_BOOL(struct person, admin, .optional = true),
    DUDA_INTEGER(struct person, mood, .optional = true),
    DUDA_ENUM(struct person, color, person_colors, .optional = true),
    DUDA_OBJECT(struct person, place, &person_place_shape, DUDA_OPTIONAL(struct person, has_place)),
    DUDA_LIST(struct person, tags, n_tags, DUDA_KIND_STRING, .optional = true, .max_length = 3),
    DUDA_LIST(struct person, places, n_places, DUDA_KIND_OBJECT, .schema = &person_place_shape,
              .optional = true),
    DUDA_INTEGERS(struct person, numbers, n_numbers, .optional = true, DUDA_MINIMUM(-2), DUDA_MAXIMUM(9)),
    DUDA_JSON_RAW(struct person, raw, .optional = true),
    DUDA_INTEGER(struct person, big, .optional = true, .json_name = "big-one"),
};
static const struct duda_schema person_shape = DUDA_SCHEMA(struct person, person_members);

#endif
