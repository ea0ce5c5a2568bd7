#pragma once

#include <concepts>
#include <type_traits>

/// The fields of each message with their numbers in api/fjord.thrift: the one description from which both directions of
/// the codec come. `visit(number, member)` leaves a member out when it has its type's zero value; `visit.always` is for
/// members whose default is another.
///
/// The wire type follows from the member's: bool, enum and uint16_t (i32), larger integers and BucketId (i64), string
/// and GlobalId (binary), vector (list), optional (as what it holds; absent when it holds nothing), everything else a
/// struct.
namespace fjord::rpc {

template <typename M, typename T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

}  // namespace fjord::rpc
