#include "segment_merge.h"

#include <utility>

namespace fjord::search {
namespace {

Status malformed_source() { return {StatusCode::Corruption, "a segment of the keyword index is malformed"}; }

}  // namespace

SegmentMerge::SegmentMerge(std::unique_ptr<SegmentWriter> writer, std::vector<Segment*> sources)
    : writer_(std::move(writer)), sources_(std::move(sources)), cursors_(sources_.size()), words_(sources_.size()) {
  for (const Segment* source : sources_) streams_.push_back(source->stream());
  for (const DocumentList list : kDocumentLists) {
    for (const Segment* source : sources_) {
      numbers_[static_cast<std::size_t>(list)].emplace_back(source->directory().of(list).count, kNotCopied);
    }
  }
}

Result<std::unique_ptr<SegmentMerge>> SegmentMerge::begin(Env& env, const std::string& directory, std::uint64_t number,
                                                          std::vector<Segment*> sources) {
  std::array<std::uint64_t, 2> documents{};
  for (const DocumentList list : kDocumentLists) {
    for (const Segment* source : sources) {
      documents[static_cast<std::size_t>(list)] += source->directory().of(list).count - source->dead(list).count();
    }
  }
  FJORD_TRY_ASSIGN(auto writer, SegmentWriter::create(env, directory, number, documents));
  return std::unique_ptr<SegmentMerge>(new SegmentMerge(std::move(writer), std::move(sources)));
}

Result<bool> SegmentMerge::step(std::size_t bytes) {
  const std::uint64_t goal = writer_->size() + bytes;
  while (writer_->size() < goal) {
    if (list_ < kDocumentLists.size()) {
      FJORD_TRY_ASSIGN(const bool copied, copy_document());
      if (copied) continue;
      ++list_;
      cursors_.assign(sources_.size(), Cursor());
    } else {
      FJORD_TRY_ASSIGN(const bool copied, copy_word());
      if (!copied) return false;
    }
  }
  return true;
}

Result<bool> SegmentMerge::fill(std::size_t source) {
  Cursor& cursor = cursors_[source];
  const DocumentList list = kDocumentLists[list_];
  const SegmentDirectory::Documents& documents = sources_[source]->directory().of(list);
  while (cursor.at == cursor.documents.size()) {
    if (cursor.run == documents.runs.size()) return false;
    cursor.number = documents.runs[cursor.run].number;
    cursor.documents.clear();
    cursor.at = 0;
    FJORD_TRY_ASSIGN(const std::string_view run, sources_[source]->read_run(streams_[source], list, cursor.run++));
    const bool is_whole = for_each_document(run, [&](const StoredDocument& document) {
      cursor.documents.push_back(document);
      return true;
    });
    if (!is_whole || documents.count - cursor.number < cursor.documents.size()) return malformed_source();
  }
  return true;
}

Result<bool> SegmentMerge::copy_document() {
  std::size_t first = sources_.size();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    FJORD_TRY_ASSIGN(const bool has_document, fill(i));
    if (!has_document) continue;
    const auto key = [&](std::size_t source) {
      return document_key(cursors_[source].documents[cursors_[source].at].gid);
    };
    if (first == sources_.size() || key(i) < key(first)) first = i;
  }
  if (first == sources_.size()) return false;
  Cursor& cursor = cursors_[first];
  const std::uint32_t number = cursor.number++;
  const StoredDocument& document = cursor.documents[cursor.at++];
  if (sources_[first]->dead(kDocumentLists[list_]).contains(number)) return true;
  FJORD_TRY_ASSIGN(numbers_[list_][first][number], writer_->add(kDocumentLists[list_], document));
  return true;
}

Result<bool> SegmentMerge::copy_word() {
  const std::string* word = nullptr;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const auto& words = sources_[i]->directory().words;
    if (words_[i] < words.size() && (word == nullptr || words[words_[i]].word < *word)) word = &words[words_[i]].word;
  }
  if (word == nullptr) return false;
  std::string merged;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const auto& words = sources_[i]->directory().words;
    if (words_[i] == words.size() || words[words_[i]].word != *word) continue;
    FJORD_TRY_ASSIGN(const std::string_view list, sources_[i]->read_list(streams_[i], words_[i]++));
    const std::vector<std::uint32_t>& numbers = numbers_[0][i];
    bool in_range = true;
    const bool is_whole = for_each_posting(list, [&](Posting posting) {
      in_range = in_range && posting.number < numbers.size();
      if (!in_range || numbers[posting.number] == kNotCopied) return;
      posting.number = numbers[posting.number];
      append_posting(merged, posting);
    });
    if (!is_whole || !in_range) return malformed_source();
  }
  if (!merged.empty()) FJORD_TRY(writer_->add_word(*word, merged));
  return true;
}

void SegmentMerge::carry_over_dead(Segment& merged) const {
  for (const DocumentList list : kDocumentLists) {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const std::vector<std::uint32_t>& numbers = numbers_[static_cast<std::size_t>(list)][i];
      for (std::uint32_t old = 0; old < numbers.size(); ++old) {
        if (numbers[old] != kNotCopied && sources_[i]->dead(list).contains(old)) merged.dead(list).add(numbers[old]);
      }
    }
  }
}

}  // namespace fjord::search
