// SPDX-License-Identifier: Apache-2.0
// Schemas of the OpenAPI document: their types and limits as text, and examples of their values.
"use strict";

const api = JSON.parse(document.getElementById("api").textContent);
const DEPTH_MAX = 8; // schemas may be recursive

function resolveSchema(schema) {
    const s = schema.anyOf ? schema.anyOf[0] : schema; // a member of a merge patch: a value, or null
    return s.$ref ? api.components.schemas[s.$ref.split("/").pop()] : s;
}

function schemaName(schema) {
    return schema.$ref ? schema.$ref.split("/").pop() : "";
}

function typeText(schema) {
    const s = resolveSchema(schema);
    if (s.type === "array")
        return `list of ${typeText(s.items)}`;
    if (s.additionalProperties?.type || s.additionalProperties?.$ref)
        return `map of ${typeText(s.additionalProperties)}`;
    if (s.format === "binary")
        return "file";
    if (s.contentEncoding)
        return s.contentEncoding;
    return schemaName(schema) || s.format || s.type || "any";
}

function limitsText(schema) {
    const s = resolveSchema(schema), words = [];
    if (s.enum)
        words.push(`one of ${s.enum.join(", ")}`);
    if (s.minimum !== undefined)
        words.push(`from ${s.minimum}`);
    if (s.maximum !== undefined)
        words.push(`to ${s.maximum}`);
    if (s.minLength === 1 || s.minItems === 1)
        words.push("not empty");
    if (s.minLength > 1)
        words.push(`at least ${s.minLength} characters`);
    if (s.maxLength)
        words.push(`at most ${s.maxLength} characters`);
    if (s.minItems > 1)
        words.push(`at least ${s.minItems} items`);
    if (s.maxItems)
        words.push(`at most ${s.maxItems} items`);
    if (s.uniqueItems)
        words.push("without duplicates");
    if (s.pattern)
        words.push(s.pattern);
    if (s.description && !schema.$ref)
        words.push(s.description);
    return words.join(", ");
}

function exampleNumber(s) {
    const low = s.minimum ?? Math.min(0, s.maximum ?? 0);
    return s.type === "integer" ? Math.ceil(low) : low;
}

function exampleText(s) {
    const texts = {
        uuid: "3fa85f64-5717-4562-b3fc-2c963f66afa6",
        date: new Date().toISOString().slice(0, 10),
        "date-time": `${new Date().toISOString().slice(0, 19)}Z`,
        email: "ana@example.org",
        uri: "https://example.org/",
        decimal: "12.50",
        "^[0-9A-Fa-f]+$": "c0ffee",
    };
    if (s.contentEncoding)
        return btoa("text");
    const text = texts[s.format] ?? texts[s.pattern] ?? "text";
    return text.padEnd(s.minLength || 0, "x").slice(0, s.maxLength || undefined);
}

// Recursive lists end as empty lists.
function exampleValue(schema, depth = 0) {
    const s = resolveSchema(schema);
    if (s.enum)
        return s.enum[0];
    if (s.type === "array") {
        const n = depth > DEPTH_MAX / 2 ? 0 : Math.max(1, s.minItems || 0);
        return Array.from({length: n}, () => exampleValue(s.items, depth + 1));
    }
    if (s.type === "object") {
        const properties = s.additionalProperties ? {name: s.additionalProperties} : s.properties;
        const members = depth > DEPTH_MAX ? [] : Object.entries(properties || {});
        return Object.fromEntries(members.map(([name, m]) => [name, exampleValue(m, depth + 1)]));
    }
    if (s.type === "boolean")
        return false;
    if (s.type === "integer" || s.type === "number")
        return exampleNumber(s);
    return s.type === "string" ? exampleText(s) : null;
}

// Calls each(path, schema, isRequired) for all members; nested members have paths such as "part.weight".
function eachMember(schema, each, path = "", depth = 0) {
    const s = resolveSchema(schema);
    if (depth > DEPTH_MAX / 2)
        return;
    if (s.type === "array") {
        eachMember(s.items, each, `${path}[]`, depth);
        return;
    }
    if (s.additionalProperties?.$ref || s.additionalProperties?.type)
        eachMember(s.additionalProperties, each, `${path}.*`, depth + 1);
    for (const [name, member] of Object.entries(s.properties || {})) {
        const here = path ? `${path}.${name}` : name;
        each(here, member, (s.required || []).includes(name));
        eachMember(member, each, here, depth + 1);
    }
}
