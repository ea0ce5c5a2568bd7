#include <algorithm>

#include "fjord/common/coding.h"
#include "segment.h"

namespace fjord::search {
namespace {

Status malformed_directory() {
  return {StatusCode::Corruption, "the directory of a segment of the keyword index is malformed"};
}

}  // namespace

void DeadNumbers::add(std::uint32_t number) {
  if (contains(number)) return;
  words_[number / 64] |= std::uint64_t{1} << number % 64;
  ++count_;
}

std::string DeadNumbers::bytes() const {
  std::string out;
  if (count_ == 0) return out;
  for (const std::uint64_t word : words_) put_fixed(out, word);
  return out;
}

bool DeadNumbers::set_bytes(std::string_view bytes) {
  if (bytes.empty()) return true;
  if (bytes.size() != words_.size() * sizeof(std::uint64_t)) return false;
  count_ = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    words_[i] = load_fixed<std::uint64_t>(bytes.data() + i * sizeof(std::uint64_t));
    count_ += static_cast<std::uint32_t>(std::popcount(words_[i]));
  }
  return true;
}

void SegmentDirectory::Documents::add_to_filter(const GlobalId& gid) {
  const std::uint64_t bits = filter.size() * 8;
  for (unsigned probe = 0; probe < kFilterProbes && bits != 0; ++probe) {
    const std::uint64_t bit = mix64(gid.hash_bits(), gid.location_bits() + (std::uint64_t{probe} << 32)) % bits;
    filter[bit / 8] = static_cast<std::uint8_t>(filter[bit / 8] | (1U << bit % 8));
  }
}

bool SegmentDirectory::Documents::may_contain(const GlobalId& gid) const {
  const std::uint64_t bits = filter.size() * 8;
  for (unsigned probe = 0; probe < kFilterProbes && bits != 0; ++probe) {
    const std::uint64_t bit = mix64(gid.hash_bits(), gid.location_bits() + (std::uint64_t{probe} << 32)) % bits;
    if ((filter[bit / 8] >> bit % 8 & 1) == 0) return false;
  }
  return true;
}

std::string SegmentDirectory::encode() const {
  std::string out;
  for (const Documents& list : documents) {
    put_varint(out, list.count);
    put_varint(out, list.end);
    put_varint(out, list.runs.size());
    for (const Run& run : list.runs) {
      out += run.first.second.view();
      put_varint(out, run.offset);
      put_varint(out, run.number);
    }
    put_string(out, {reinterpret_cast<const char*>(list.filter.data()), list.filter.size()});
  }
  put_varint(out, words.size());
  for (const Word& word : words) {
    put_string(out, word.word);
    put_varint(out, word.offset);
    put_varint(out, word.bytes);
  }
  return out;
}

Result<SegmentDirectory> SegmentDirectory::decode(std::string_view bytes, std::uint64_t offset_of_directory) {
  SegmentDirectory directory;
  ByteReader in(bytes);
  std::uint64_t at = kSegmentHeaderBytes;
  for (Documents& list : directory.documents) {
    const std::uint64_t count = in.varint();
    list.end = in.varint();
    const std::uint64_t runs = in.varint();
    if (!in.ok() || count > UINT32_MAX || runs > in.remaining() || list.end < at || list.end > offset_of_directory) {
      return malformed_directory();
    }
    list.count = static_cast<std::uint32_t>(count);
    for (std::uint64_t i = 0; i < runs; ++i) {
      const std::string_view gid = in.bytes(kGidBytes);
      if (!in.ok()) return malformed_directory();
      Run run{document_key(GlobalId::from_bytes(gid)), in.varint(), static_cast<std::uint32_t>(in.varint())};
      const bool is_first = list.runs.empty();
      if (run.offset < at || run.offset >= list.end || run.number >= list.count || (is_first && run.number != 0) ||
          (!is_first && (run.number <= list.runs.back().number || run.first <= list.runs.back().first))) {
        return malformed_directory();
      }
      at = run.offset + 1;
      list.runs.push_back(run);
    }
    if (list.count != 0 && list.runs.empty()) return malformed_directory();
    at = list.end;
    const std::string_view filter = in.string();
    list.filter.assign(filter.begin(), filter.end());
  }
  const std::uint64_t words = in.varint();
  if (!in.ok() || words > in.remaining()) return malformed_directory();
  for (std::uint64_t i = 0; i < words; ++i) {
    Word word{std::string(in.string()), in.varint(), 0};
    const std::uint64_t length = in.varint();
    if (!in.ok() || word.offset < at || length > offset_of_directory - word.offset ||
        word.offset > offset_of_directory || length > UINT32_MAX ||
        (!directory.words.empty() && word.word <= directory.words.back().word)) {
      return malformed_directory();
    }
    word.bytes = static_cast<std::uint32_t>(length);
    at = word.offset + length;
    directory.words.push_back(std::move(word));
  }
  if (!in.at_end()) return malformed_directory();
  return directory;
}

}  // namespace fjord::search
