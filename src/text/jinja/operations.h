#pragma once

#include "text/jinja/runtime.h"

// What operators do with values, as in Python. All throw Failure where Python would raise.
namespace stagecraft::jinja {

bool is_true(const Value& value);
bool equal(Runtime& runtime, const Value& a, const Value& b);
// a < b, for two numbers, two strings or two lists.
bool less(Runtime& runtime, const Value& a, const Value& b);
bool contains(Runtime& runtime, const Value& container, const Value& value);
// `op` is one of == != < <= > >= in "not in".
bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b);

// `op` is one of + - * / // % **.
Value binary(Runtime& runtime, std::string_view op, const Value& a, const Value& b);
Value negative(const Value& value);
// A string with & < > ' " as HTML writes them; markup as it is.
Value escaped(Runtime& runtime, const Value& text);

// a.name and a[key]; undefined where there is none.
Value attribute(Runtime& runtime, const Value& value, std::string_view name);
Value item(Runtime& runtime, const Value& value, const Value& key);
// a[first:last:step]; None where one is left out.
Value slice(Runtime& runtime, const Value& value, const Value& first, const Value& last,
            const Value& step);

// What a loop goes through: the elements of a list, the keys of a dict, the characters of a string,
// nothing where a value is undefined.
Values elements(Runtime& runtime, const Value& value);
std::size_t length(Runtime& runtime, const Value& value);

// `list` sorted by its elements' `keys`, equal ones in the order in which they are.
void sort_by(Runtime& runtime, Values& list, const Values& keys, bool reverse);

// dict[key] = value, while a dict is made. Throws Failure if `key` is none (a list, a dict).
void put(Runtime& runtime, Dict& dict, const Value& key, const Value& value);

// Counts what it may cost to look for `needle` all through `text`, which is asked for before: on
// "aaaa...ab" string_view::find compares again and again.
void count_search(Runtime& runtime, std::string_view text, std::string_view needle);

}  // namespace stagecraft::jinja
