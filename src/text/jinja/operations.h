#pragma once

#include "text/jinja/runtime.h"

// Operators on values, as in Python. All throw Failure if Python would raise an exception.
namespace stagecraft::jinja {

bool is_true(const Value& value);
bool equal(Runtime& runtime, const Value& a, const Value& b);
// a < b, for two numbers, two strings, two lists or two tuples.
bool less(Runtime& runtime, const Value& a, const Value& b);
bool contains(Runtime& runtime, const Value& container, const Value& value);
// `op` is one of == != < <= > >= in "not in".
bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b);

// `op` is one of + - * / // % **.
Value binary(Runtime& runtime, std::string_view op, const Value& a, const Value& b);
Value negative(const Value& value);
// A string with & < > ' " escaped for HTML; markup is returned unchanged.
Value escaped(Runtime& runtime, const Value& text);

// a.name and a[key]; undefined if there is none.
Value attribute(Runtime& runtime, const Value& value, std::string_view name);
Value item(Runtime& runtime, const Value& value, const Value& key);
// a[first:last:step]; an omitted part is None.
Value slice(Runtime& runtime, const Value& value, const Value& first, const Value& last,
            const Value& step);

// The values of a loop: the elements of a list, the keys of a dict, the characters of a string,
// nothing for an undefined value.
Values elements(Runtime& runtime, const Value& value);
std::size_t length(Runtime& runtime, const Value& value);

// Sorts `list` by `keys`, one key per element. Equal elements keep their order.
void sort_by(Runtime& runtime, Values& list, const Values& keys, bool reverse);

// dict[key] = value, while a dict is built. Throws Failure if `key` cannot be a key (a list, a
// dict).
void put(Runtime& runtime, Dict& dict, const Value& key, const Value& value);

// Counts the worst-case cost of searching `needle` in `text`, before the search: on "aaaa...ab",
// string_view::find compares the same bytes again and again.
void count_search(Runtime& runtime, std::string_view text, std::string_view needle);

}  // namespace stagecraft::jinja
