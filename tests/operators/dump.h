#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/compare.h"
#include "checkpoint/safetensors.h"
#include "tensor/matrix.h"

namespace stagecraft {

// One case of tests/data/operators/OPERATOR.safetensors: inputs from PyTorch, the results of an f64
// oracle, and the measured tolerance. Written by reference/make_operators.py.
class DumpCase {
 public:
  DumpCase(const SafetensorsFile& file, const nlohmann::json& about)
      : file_(file), about_(about), name_(about.at("name").get<std::string>()) {}

  const std::string& name() const { return name_; }
  float scalar(const char* key) const { return about_.at("scalars").at(key).get<float>(); }
  std::size_t size(const char* key) const {
    return about_.at("scalars").at(key).get<std::size_t>();
  }

  std::vector<float> vector(const std::string& argument) const {
    const StoredTensor& tensor = stored("input." + argument);
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  // An input that has two dimensions.
  Matrix<float> matrix(const std::string& argument) const {
    const std::vector<std::size_t>& shape = stored("input." + argument).shape;
    const std::vector<float> values = vector(argument);
    Matrix<float> result(shape[0], shape.back());
    if (!values.empty()) std::copy(values.begin(), values.end(), result.data());
    return result;
  }

  void expect(const std::string& result, std::span<const float> got) const {
    const StoredTensor& oracle = stored("expected." + result);
    const double allowed = about_.at("tolerance").at(result).get<double>();
    const StoredTensor ours{result, DType::F32, oracle.shape, std::as_bytes(got)};
    ASSERT_EQ(oracle.bytes.size() / sizeof(double), got.size()) << name_;
    const Comparison found = compare_tensors(oracle, ours, {0.0, allowed});
    EXPECT_EQ(found.differing, 0u)
        << name_ << ": " << result << "[" << found.worst.index << "]: expected " << found.worst.a
        << ", got " << found.worst.b << " (allowed " << allowed << ")";
  }
  void expect(const std::string& result, const Matrix<float>& got) const {
    expect(result, std::span<const float>(got.data(), got.rows() * got.cols()));
  }

 private:
  const StoredTensor& stored(const std::string& key) const {
    const StoredTensor* tensor = file_.find(name_ + "." + key);
    if (tensor == nullptr) throw Error("{}: '{}' is missing", name_, key);
    return *tensor;
  }

  const SafetensorsFile& file_;
  const nlohmann::json& about_;
  std::string name_;
};

// Calls check(case) for every case of an operator.
template <class Check>
void for_each_case(const std::string& op, Check&& check) {
  const SafetensorsFile file(std::string(TEST_DATA "/operators/") + op + ".safetensors");
  const nlohmann::json cases = nlohmann::json::parse(file.metadata().at("cases"));
  ASSERT_FALSE(cases.empty());
  for (const nlohmann::json& about : cases) check(DumpCase(file, about));
}

}  // namespace stagecraft
