/* SPDX-License-Identifier: Apache-2.0 */
/* The page on which routes are described and tried: what makes it out of an OpenAPI text. */
#ifndef DUDA_DEV_DOC_H
#define DUDA_DEV_DOC_H

#include <monkey/str.h>

extern const mk_str dev_doc_style, dev_doc_script;

#endif
