#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"
#include "generation/sampling_ranges.h"
#include "serve/api_error.h"

namespace stagecraft {

inline constexpr const char* kRequest = "request";  // the place that errors name

// "request: 'FIELD'": the place of a problem in `field`.
std::string place_of(std::string_view field);

// Throw ApiError (400): "request: 'FIELD': PROBLEM", or with the problem "expected WHAT, found
// FOUND". field: the path of the field in the request, such as "messages[1].role".
[[noreturn]] void refuse_field(const std::string& field, std::string_view problem,
                               std::string code = "");
[[noreturn]] void expected(const std::string& field, std::string_view what, std::string_view found,
                           std::string code = "");
[[noreturn]] void expected(const std::string& field, std::string_view what,
                           std::optional<JsonNode> found);

// A string of the request. Throws ApiError if the value is something else.
std::string text_of(JsonNode value, const std::string& field);

// The member "type" of an object; "" if there is no such string.
std::string_view type_of(JsonNode value);

// Calls `read`, and throws its Error as an ApiError about `field`. For functions that read a part
// of the request but do not know its fields.
template <class Read>
auto reading(const std::string& field, Read read) {
  try {
    return read();
  } catch (const ApiError&) {
    throw;
  } catch (const Error& problem) {
    throw ApiError::bad_request(field, problem.what());
  }
}

// The members of one JSON object of a request. Remembers which ones were read, so that it can
// refuse the others. A member that is null counts as left out. Each function throws ApiError, which
// names the path of the member.
class RequestFields {
 public:
  // path: of the object in the request; "" for the whole request.
  explicit RequestFields(JsonNode object, std::string path = "")
      : object_(object), path_(std::move(path)) {}

  std::string path(std::string_view key) const;

  std::optional<JsonNode> find(const char* key);
  // These two refuse an object without the member. what: what was expected, for the error.
  JsonNode needed(const char* key, std::string_view what);
  std::string text(const char* key);
  std::size_t size(const char* key, std::size_t min, std::size_t max, std::size_t default_value);
  float number(const char* key, NumberRange range, float default_value);
  bool flag(const char* key, bool default_value);
  // Accepts these members with any value: they do not influence the answer, or are read elsewhere.
  void ignore(std::initializer_list<const char*> keys);
  // Accepts the member only with a value that changes nothing. neutral: these values, as a JSON
  // array.
  void only(const char* key, std::string_view neutral);
  // Call it last: throws if the object has a member that none of the calls before named.
  void refuse_others() const;

 private:
  template <class T, class Read>
  T read(const char* key, T default_value, Read convert);

  JsonNode object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace stagecraft
