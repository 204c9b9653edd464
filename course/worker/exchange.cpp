#include "course/worker/exchange.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

namespace stagecraft::stages {
namespace {

constexpr std::uint32_t kUntouched = 0x7f85a5a5;  // a signalling NaN; arithmetic makes it quiet:
constexpr std::uint32_t kQuiet = 0x7fc5a5a5;
constexpr std::uint32_t kSign = 0x80000000;

using Metadata = std::map<std::string, std::string>;

std::vector<StoredTensor> stored_as(const std::map<std::string, Tensor>& tensors) {
  std::vector<StoredTensor> stored;
  for (const auto& [name, tensor] : tensors) {
    stored.push_back({name, DType::F32, tensor.shape, std::as_bytes(std::span(tensor.values))});
  }
  return stored;
}

// The prefix of the tensors of Request::others.
std::string prefix(std::size_t other) { return fmt::format("other {}: ", other); }

std::map<std::string, Tensor> tensors_of(const SafetensorsFile& file) {
  std::map<std::string, Tensor> tensors;
  for (const StoredTensor& stored : file.tensors()) tensors[stored.name] = tensor_of(stored);
  return tensors;
}

const std::string& field(const SafetensorsFile& file, const std::string& name) {
  const auto found = file.metadata().find(name);
  if (found == file.metadata().end()) throw Error("'{}' is missing", name);
  return found->second;
}

std::string short_field(const SafetensorsFile& file, const std::string& name) {
  return shortened(field(file, name), Response::kMaxText);
}

// The message of a student's error, made valid UTF-8.
std::string as_text(const std::string& message) {
  const nlohmann::json text = shortened(message, Response::kMaxText);
  const std::string valid = text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(valid).get<std::string>();
}

// Throws Error if the header of a safetensors file is too long.
void check_header(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t length = 0;
  for (int i = 0; i < 8; ++i) length |= static_cast<std::uint64_t>(in.get() & 0xff) << (8 * i);
  if (in && length > Response::kMaxHeader) {
    throw Error("a header of {} bytes, expected at most {}", length, Response::kMaxHeader);
  }
}

}  // namespace

std::string output_name(const std::string& name, std::size_t call) {
  return call == 1 ? name : fmt::format("{}#{}", name, call);
}

Tensor tensor_of(const StoredTensor& stored) {
  if (stored.dtype != DType::F32) throw Error("tensor '{}': expected F32", stored.name);
  Tensor tensor{stored.shape, std::vector<float>(stored.bytes.size() / sizeof(float))};
  if (!tensor.values.empty()) {
    std::memcpy(tensor.values.data(), stored.bytes.data(), stored.bytes.size());
  }
  return tensor;
}

std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && utf8_is_continuation(text[most])) --most;
  text.resize(most);
  return text + "...";
}

Request Request::call(std::size_t number) const {
  Request one{function, inputs, scalars, texts, alias, gap, wider};
  if (number <= calls) return one;
  one.inputs = others.at(number - calls - 1).inputs;
  one.scalars = others.at(number - calls - 1).scalars;
  one.texts = others.at(number - calls - 1).texts;
  return one;
}

void Request::write(const std::filesystem::path& path) const {
  std::vector<StoredTensor> stored = stored_as(inputs);
  nlohmann::json rest_of_others = nlohmann::json::array();
  for (const Other& other : others) {
    for (StoredTensor& tensor : stored_as(other.inputs)) {
      tensor.name = prefix(rest_of_others.size()) + tensor.name;
      stored.push_back(std::move(tensor));
    }
    rest_of_others.push_back({{"scalars", other.scalars}, {"texts", other.texts}});
  }
  write_safetensors(path, stored,
                    {{"function", function},
                     {"scalars", nlohmann::json(scalars).dump()},
                     {"texts", nlohmann::json(texts).dump()},
                     {"alias", alias},
                     {"gap", std::to_string(gap)},
                     {"wider", wider ? "1" : "0"},
                     {"others", rest_of_others.dump()},
                     {"at_once", at_once ? "1" : "0"},
                     {"calls", std::to_string(calls)}});
}

Request Request::read(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  Request request;
  request.inputs = tensors_of(file);
  for (const nlohmann::json& rest : nlohmann::json::parse(field(file, "others"))) {
    Other& other = request.others.emplace_back();
    other.scalars = rest.at("scalars").get<std::map<std::string, double>>();
    other.texts = rest.at("texts").get<std::map<std::string, std::string>>();
    const std::string mark = prefix(request.others.size() - 1);
    for (auto at = request.inputs.lower_bound(mark);
         at != request.inputs.end() && at->first.starts_with(mark);) {
      other.inputs[at->first.substr(mark.size())] = std::move(at->second);
      at = request.inputs.erase(at);
    }
  }
  request.at_once = field(file, "at_once") == "1";
  request.function = field(file, "function");
  request.scalars =
      nlohmann::json::parse(field(file, "scalars")).get<std::map<std::string, double>>();
  request.texts =
      nlohmann::json::parse(field(file, "texts")).get<std::map<std::string, std::string>>();
  request.alias = field(file, "alias");
  request.gap = std::stoul(field(file, "gap"));
  request.wider = field(file, "wider") == "1";
  request.calls = std::stoul(field(file, "calls"));
  return request;
}

void Response::write(const std::filesystem::path& path) const {
  std::ofstream out(path, std::ios::binary);  // no temporary file: a worker may not create one
  write_safetensors(out, stored_as(outputs),
                    {{"status", std::to_string(static_cast<int>(status))},
                     {"message", as_text(message)},
                     {"overrun", overrun},
                     {"overrun_side", overrun_side},
                     {"changed_input", changed_input}});
  if (!out.flush()) throw Error("{}: cannot be written", path.string());
}

Response Response::read(const std::filesystem::path& path) {
  check_header(path);
  const SafetensorsFile file(path);
  Response response;
  response.outputs = tensors_of(file);
  const std::string status = field(file, "status");
  if (status.size() != 1 || status[0] < '0' || status[0] > '3') {
    throw Error("'status': found {}", status);
  }
  response.status = static_cast<Status>(status[0] - '0');
  response.message = short_field(file, "message");
  response.overrun = short_field(file, "overrun");
  response.overrun_side = short_field(file, "overrun_side");
  const std::string& side = response.overrun_side;
  if (!response.overrun.empty() && side != "before" && side != "between" && side != "after") {
    throw Error("'overrun_side': found {}", side);
  }
  response.changed_input = short_field(file, "changed_input");
  return response;
}

std::vector<int> bytes_of(const std::string& text) {
  std::vector<int> numbers;
  for (const char byte : text) numbers.push_back(static_cast<unsigned char>(byte));
  return numbers;
}

float untouched_value() { return std::bit_cast<float>(kUntouched); }

bool is_untouched(float value) { return std::bit_cast<std::uint32_t>(value) == kUntouched; }

bool is_made_of_untouched(float value) {
  return (std::bit_cast<std::uint32_t>(value) & ~kSign) == kQuiet;
}

}  // namespace stagecraft::stages
