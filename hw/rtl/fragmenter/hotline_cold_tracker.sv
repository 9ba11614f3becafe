// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Gives each distinct row of a job its position: 0, 1, 2 ... in the order of first occurrence.
///
/// A request is up to `ColdLanes` rows in order (place 0 first), any of which may be equal. It is
/// answered by one or more results, which together hold each place once, lower places first:
///
///   req_rows    {a b a c}                      a, b: same bank
///   res_mask    0001 | 0110 | 1000             res_last  0 | 0 | 1
///   positions    0   |  1 0 |  2               res_new   1 | 1 0 | 1
///
/// A hash table of `ColdRowsMax / 2` sets of 4 entries {generation, position, row} keeps the rows,
/// spread over 2 * ColdLanes banks (one bank if ColdLanes is 1). A row lies in its home set, or, if
/// that was full, in the first set behind it that was not; the sets of all banks form one ring. The
/// table is at most half full, so any `ColdRowsMax` rows fit. An entry counts only if its generation is that
/// of the job, so a new job needs no clearing but once in 2**GenerationBits - 1 jobs.
///
///   req -> [hash] -> [bundle] -> banks read -> [s1] -> [s2: sets] -> match -> [s3] -> decide -> res
///                    rows of different banks,                          ^                 | write
///                    in order: a group                                 +--- forwarding --+
///
/// A group moves through the stages in step. What s3 writes is forwarded to the groups behind it,
/// so equal rows in successive groups are exact. A row that is in none of the four entries
/// of a full home set needs a walk along the ring; the groups in the stages then take turns at it,
/// one row at a time, before new ones enter.
///
/// Throughput  One group per cycle; a group is a request if its rows have different banks. A walk costs
///             3 cycles per set, 1 per row and 1 per group. Rows that were chosen to share a home
///             make walks long (up to ColdRowsMax / 4 sets), never wrong. The last 2 * ColdLanes
///             positions of a job are given away in walks.
/// Latency     6 cycles.
/// Stalls      By `res_ready_i`, and as above.
/// Errors      A new row when `cold_rows_max_i` positions are taken gets `overflow`; from the first such
///             row to the next job nothing is added, and every row that is not found overflows.
/// Reset       Drops everything; a sweep then marks all entries as old (contents of RAM are random).
module hotline_cold_tracker import hotline_fragment_pkg::*; #(
  /// Distinct rows that the table is sure to hold, a power of two of at least 8 * ColdLanes.
  parameter int unsigned ColdRowsMax    = 128,
  /// Rows of a request: 1, 2, 4 ...
  parameter int unsigned ColdLanes      = 1,
  /// Bits that travel along with a request.
  parameter int unsigned UserBits       = 1,
  /// Bits of the job's tag in each entry, at least 1.
  parameter int unsigned GenerationBits = 8,
  localparam int unsigned PositionBits = $clog2(ColdRowsMax)
) (
  input  logic                                   clk_i,
  input  logic                                   rst_ni,

  /// A new job: forgets all rows. Accepted when nothing is inside.
  input  logic                                   start_valid_i,
  output logic                                   start_ready_o,
  /// 1 ... ColdRowsMax; stable from the start to the last result.
  input  logic [31:0]                            cold_rows_max_i,

  input  logic                                   req_valid_i,
  output logic                                   req_ready_o,
  /// Places in use; never 0.
  input  logic [ColdLanes-1:0]                   req_mask_i,
  input  logic [ColdLanes-1:0][31:0]             req_rows_i,
  input  logic [UserBits-1:0]                    req_user_i,

  output logic                                   res_valid_o,
  input  logic                                   res_ready_i,
  output logic [ColdLanes-1:0]                   res_mask_o,
  output logic [ColdLanes-1:0][31:0]             res_rows_o,
  output logic [ColdLanes-1:0][PositionBits-1:0] res_positions_o,
  /// First occurrence; the position is the row's from now on.
  output logic [ColdLanes-1:0]                   res_new_o,
  /// No position was left; `new` is low and the position means nothing.
  output logic [ColdLanes-1:0]                   res_overflow_o,
  output logic [UserBits-1:0]                    res_user_o,
  /// All places of the request are answered.
  output logic                                   res_last_o,

  /// Nothing inside, no sweep.
  output logic                                   idle_o,
  /// A request waits for a bank or for a walk.
  output logic                                   stall_o
);

  localparam int unsigned Ways      = 4;
  localparam int unsigned Banks     = ColdLanes == 1 ? 1 : 2 * ColdLanes;
  localparam int unsigned Sets      = 2 * ColdRowsMax / Ways;
  localparam int unsigned Depth     = Sets / Banks;
  localparam int unsigned SetBits   = $clog2(Sets);
  localparam int unsigned BankBits  = $clog2(Banks);
  // At least one bit each, for ports and indices.
  localparam int unsigned BankWidth  = Banks > 1 ? BankBits : 1;
  localparam int unsigned IndexWidth = $clog2(Depth);
  localparam int unsigned PlaceWidth = ColdLanes > 1 ? $clog2(ColdLanes) : 1;
  localparam int unsigned CountWidth = $clog2(ColdLanes + 1);

  if (ColdLanes < 1 || (ColdLanes & (ColdLanes - 1)) != 0) begin : gen_bad_lanes
    $fatal(1, "%m: ColdLanes must be a power of two");
  end
  if (ColdRowsMax < 8 * ColdLanes || (ColdRowsMax & (ColdRowsMax - 1)) != 0) begin : gen_bad_rows
    $fatal(1, "%m: ColdRowsMax must be a power of two of at least 8 * ColdLanes");
  end
  if (GenerationBits < 1 || UserBits < 1) begin : gen_bad_bits
    $fatal(1, "%m: GenerationBits and UserBits must be at least 1");
  end

  typedef logic [BankWidth-1:0]      bank_t;
  typedef logic [IndexWidth-1:0]     index_t;
  typedef logic [PlaceWidth-1:0]     place_t;
  typedef logic [PositionBits-1:0]   position_t;
  typedef logic [GenerationBits-1:0] generation_t;
  typedef logic [1:0]                way_t;

  typedef struct packed {
    generation_t generation;
    position_t   position;
    logic [31:0] row;
  } entry_t;

  localparam generation_t LastGeneration = '1;

  // ------------------------------------------------------------------------------------- control
  typedef enum logic [1:0] {
    StSweep,  // marks all entries as old
    StRun,    // groups pass
    StWalk    // the groups in the stages walk; none enters
  } state_e;

  // Steps of a walk.
  typedef enum logic [1:0] {
    WkPick,    // choose a row; or, all being done, the group leaves
    WkRead,    // read a set
    WkCatch,   // its word comes from the RAM
    WkDecide   // found, room for a new row, or on to the next set
  } walk_e;

  state_e               state_q;
  walk_e                walk_q;
  index_t               sweep_q;
  generation_t          generation_q;
  logic [PositionBits:0] room_q;         // positions left
  position_t            next_q;          // next position
  logic                 overflow_q;
  logic                 start_fire;
  logic                 advance;         // the stages move

  // --------------------------------------------------------------------------------- hash
  logic                            h_valid_q, h_ready;
  logic [ColdLanes-1:0]            h_mask_q;
  logic [ColdLanes-1:0][31:0]      h_rows_q;
  bank_t [ColdLanes-1:0]           h_bank_q;
  index_t [ColdLanes-1:0]          h_index_q;
  logic [UserBits-1:0]             h_user_q;

  // ------------------------------------------------------------------------ the bundle, its groups
  logic                            b_valid_q, b_ready;
  logic [ColdLanes-1:0]            b_mask_q;       // places still to be sent
  logic [ColdLanes-1:0][31:0]      b_rows_q;
  bank_t [ColdLanes-1:0]           b_bank_q;
  index_t [ColdLanes-1:0]          b_index_q;
  logic [UserBits-1:0]             b_user_q;
  logic [ColdLanes-1:0]            b_take;
  logic                            b_last, issue;

  assign req_ready_o = !h_valid_q || h_ready;
  assign h_ready     = !b_valid_q || (issue && b_last);
  assign b_ready     = h_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      h_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end else begin
      if (req_ready_o) begin
        h_valid_q <= req_valid_i;
      end
      if (b_ready) begin
        b_valid_q <= h_valid_q;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (req_ready_o) begin
      h_mask_q <= req_mask_i;
      h_rows_q <= req_rows_i;
      h_user_q <= req_user_i;
      for (int unsigned place = 0; place < ColdLanes; place++) begin
        h_bank_q[place]  <= bank_t'(cold_hash(req_rows_i[place], SetBits) & 32'(Banks - 1));
        h_index_q[place] <= index_t'(cold_hash(req_rows_i[place], SetBits) >> BankBits);
      end
    end
    if (b_ready) begin
      b_mask_q  <= h_mask_q;
      b_rows_q  <= h_rows_q;
      b_bank_q  <= h_bank_q;
      b_index_q <= h_index_q;
      b_user_q  <= h_user_q;
    end else if (issue) begin
      b_mask_q  <= b_mask_q & ~b_take;
    end
  end

  // The longest run of the places left whose banks differ.
  always_comb begin
    logic clash;
    clash  = 1'b0;
    b_take = '0;
    for (int unsigned place = 0; place < ColdLanes; place++) begin
      for (int unsigned lower = 0; lower < place; lower++) begin
        if (b_mask_q[place] && b_mask_q[lower] && b_bank_q[place] == b_bank_q[lower]) begin
          clash = 1'b1;
        end
      end
      b_take[place] = b_mask_q[place] && !clash;
    end
  end

  assign b_last = b_take == b_mask_q;
  assign issue  = state_q == StRun && b_valid_q && advance;

  // --------------------------------------------------------------- stages: lookups by bank
  // Common to all lookups of a group.
  logic                       s1_valid_q, s2_valid_q, s3_valid_q;
  logic [ColdLanes-1:0]       s1_mask_q, s2_mask_q, s3_mask_q;
  logic [ColdLanes-1:0][31:0] s1_rows_q, s2_rows_q, s3_rows_q;
  bank_t [ColdLanes-1:0]      s1_bank_q, s2_bank_q, s3_bank_q;
  index_t [ColdLanes-1:0]     s1_index_q, s2_index_q, s3_index_q;
  logic [UserBits-1:0]        s1_user_q, s2_user_q, s3_user_q;
  logic                       s1_last_q, s2_last_q, s3_last_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
      s3_valid_q <= 1'b0;
    end else if (advance) begin
      s1_valid_q <= issue;
      s2_valid_q <= s1_valid_q;
      s3_valid_q <= s2_valid_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (advance) begin
      s1_mask_q  <= b_take;
      s1_rows_q  <= b_rows_q;
      s1_bank_q  <= b_bank_q;
      s1_index_q <= b_index_q;
      s1_user_q  <= b_user_q;
      s1_last_q  <= b_last;
      s2_mask_q  <= s1_mask_q;
      s2_rows_q  <= s1_rows_q;
      s2_bank_q  <= s1_bank_q;
      s2_index_q <= s1_index_q;
      s2_user_q  <= s1_user_q;
      s2_last_q  <= s1_last_q;
      s3_mask_q  <= s2_mask_q;
      s3_rows_q  <= s2_rows_q;
      s3_bank_q  <= s2_bank_q;
      s3_index_q <= s2_index_q;
      s3_user_q  <= s2_user_q;
      s3_last_q  <= s2_last_q;
    end
  end

  // ------------------------------------------------------------------------------------ banks
  // Per bank: which place uses it in a stage (none: the mask bit of the place is 0).
  logic [Banks-1:0]             bank_read;
  index_t [Banks-1:0]           bank_read_index;
  entry_t [Banks-1:0][Ways-1:0] bank_word;
  logic [Banks-1:0][Ways-1:0]   bank_write;
  index_t [Banks-1:0]           bank_write_index;
  entry_t [Banks-1:0]           bank_write_entry;

  for (genvar bank = 0; bank < int'(Banks); bank++) begin : gen_bank
    for (genvar way = 0; way < int'(Ways); way++) begin : gen_way
      hotline_ram_1r1w #(
        .Width($bits(entry_t)),
        .Depth(Depth)
      ) u_ram (
        .clk_i,
        .we_i   (bank_write[bank][way]),
        .waddr_i(bank_write_index[bank]),
        .wdata_i(bank_write_entry[bank]),
        .re_i   (bank_read[bank]),
        .raddr_i(bank_read_index[bank]),
        .rdata_o(bank_word[bank][way])
      );
    end
  end

  // A write of s3, per place, if the stages move: seen by what was read too early to see it.
  logic [ColdLanes-1:0]       put, put_q;            // put_q: that of the step before
  way_t [ColdLanes-1:0]       put_way, put_way_q;
  position_t [ColdLanes-1:0]  put_position, put_position_q;
  bank_t [ColdLanes-1:0]      put_bank_q;
  index_t [ColdLanes-1:0]     put_index_q;
  logic [ColdLanes-1:0][31:0] put_row_q;

  // s1 -> s2: the word read, with the writes of this step and of the one before.
  entry_t [ColdLanes-1:0][Ways-1:0] s2_set_q, s1_set;

  always_comb begin
    for (int unsigned place = 0; place < ColdLanes; place++) begin
      s1_set[place] = bank_word[s1_bank_q[place]];
      for (int unsigned other = 0; other < ColdLanes; other++) begin
        if (put_q[other] && put_bank_q[other] == s1_bank_q[place]
            && put_index_q[other] == s1_index_q[place]) begin
          s1_set[place][put_way_q[other]] =
              '{generation: generation_q, position: put_position_q[other], row: put_row_q[other]};
        end
      end
      for (int unsigned other = 0; other < ColdLanes; other++) begin
        if (put[other] && s3_bank_q[other] == s1_bank_q[place]
            && s3_index_q[other] == s1_index_q[place]) begin
          s1_set[place][put_way[other]] =
              '{generation: generation_q, position: put_position[other], row: s3_rows_q[other]};
        end
      end
    end
  end

  // s2 -> s3: compare; a write of this step makes one more entry, which is compared aside.
  logic [ColdLanes-1:0]                 s3_hit_q, s2_hit;
  position_t [ColdLanes-1:0]            s3_position_q, s2_position;
  logic [ColdLanes-1:0][2:0]            s3_used_q, s2_used;

  always_comb begin
    for (int unsigned place = 0; place < ColdLanes; place++) begin
      s2_hit[place]      = 1'b0;
      s2_position[place] = '0;
      s2_used[place]     = '0;
      for (int unsigned way = 0; way < Ways; way++) begin
        if (s2_set_q[place][way].generation == generation_q) begin
          s2_used[place] = s2_used[place] + 1'b1;
          if (s2_set_q[place][way].row == s2_rows_q[place]) begin
            s2_hit[place]      = 1'b1;
            s2_position[place] = s2_position[place] | s2_set_q[place][way].position;
          end
        end
      end
      for (int unsigned other = 0; other < ColdLanes; other++) begin
        if (put[other] && s3_bank_q[other] == s2_bank_q[place]
            && s3_index_q[other] == s2_index_q[place]) begin
          s2_used[place] = s2_used[place] + 1'b1;
          if (s3_rows_q[other] == s2_rows_q[place]) begin
            s2_hit[place]      = 1'b1;
            s2_position[place] = put_position[other];
          end
        end
      end
    end
  end

  logic [ColdLanes-1:0] put_now;   // written in this cycle
  logic                 plenty_q;  // positions for this group and one more

  always_ff @(posedge clk_i) begin
    // One cycle old, so the group of that cycle may have taken its share since.
    plenty_q <= room_q >= (PositionBits + 1)'(2 * ColdLanes);
    if (advance) begin
      s2_set_q       <= s1_set;
      s3_hit_q       <= s2_hit;
      s3_position_q  <= s2_position;
      s3_used_q      <= s2_used;
      put_way_q      <= put_way;
      put_position_q <= put_position;
      put_bank_q     <= s3_bank_q;
      put_index_q    <= s3_index_q;
      put_row_q      <= s3_rows_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || state_q != StRun) begin
      put_q <= '0;
    end else if (advance) begin
      put_q <= put_now;
    end
  end

  // ------------------------------------------------------------------------------- s3: decision
  logic                      out_valid, out_ready;
  logic [ColdLanes-1:0]      fresh, need_walk, out_new, out_overflow;
  position_t [ColdLanes-1:0] out_position;
  logic [CountWidth-1:0]     taken, counted;
  logic                      walk_due;

  // Walk: what is known of the group in s3.
  logic [ColdLanes-1:0]      w_done_q, w_new_q, w_overflow_q;
  position_t [ColdLanes-1:0] w_position_q;
  place_t                    w_place_q, w_pick;
  logic                      w_all_done, w_found, w_full, w_end;
  bank_t                     w_bank_q;
  index_t                    w_index_q;
  entry_t [Ways-1:0]         w_set_q;
  position_t                 w_match;
  logic [2:0]                w_used;
  logic                      w_add, w_lack;

  always_comb begin
    taken = '0;
    for (int unsigned place = 0; place < ColdLanes; place++) begin
      fresh[place]        = s3_valid_q && s3_mask_q[place] && !s3_hit_q[place];
      // Close to the last position rows walk, too: one at a time they are easy to count.
      need_walk[place]    = fresh[place] && !overflow_q
                            && (s3_used_q[place] == 3'(Ways) || !plenty_q);
      // Counts only if the stages move, which they do not if the group must walk.
      put[place]          = fresh[place] && !overflow_q;
      put_way[place]      = way_t'(s3_used_q[place]);
      put_position[place] = next_q + position_t'(taken);
      taken               = taken + CountWidth'(fresh[place]);
    end
    walk_due = state_q == StRun && need_walk != '0;
    put_now  = state_q == StRun && s3_valid_q && out_ready && !walk_due ? put : '0;
    counted  = '0;
    for (int unsigned place = 0; place < ColdLanes; place++) begin
      counted = counted + CountWidth'(put_now[place]);
    end
  end

  // The group leaves, or waits; in a walk when all its rows are done.
  assign w_all_done = (s3_mask_q & ~w_done_q) == '0;
  assign out_valid  = s3_valid_q && (state_q == StWalk ? walk_q == WkPick && w_all_done
                                                      : !walk_due);
  assign advance    = (!s3_valid_q || (out_valid && out_ready)) && state_q != StSweep
                      && !(state_q == StWalk && s3_valid_q && walk_q != WkPick);

  always_comb begin
    out_new      = state_q == StWalk ? w_new_q : put;
    out_overflow = state_q == StWalk ? w_overflow_q : fresh & {ColdLanes{overflow_q}};
    for (int unsigned place = 0; place < ColdLanes; place++) begin
      out_position[place] = state_q == StWalk ? w_position_q[place]
                            : s3_hit_q[place] ? s3_position_q[place] : put_position[place];
    end
  end

  // ---------------------------------------------------------------------------------------- walk
  always_comb begin
    w_pick = '0;
    for (int unsigned place = ColdLanes; place > 0; place--) begin
      if (s3_mask_q[place-1] && !w_done_q[place-1]) begin
        w_pick = place_t'(place - 1);
      end
    end
    w_found = 1'b0;
    w_match = '0;
    w_used  = '0;
    for (int unsigned way = 0; way < Ways; way++) begin
      if (w_set_q[way].generation == generation_q) begin
        w_used = w_used + 1'b1;
        if (w_set_q[way].row == s3_rows_q[w_place_q]) begin
          w_found = 1'b1;
          w_match = w_match | w_set_q[way].position;
        end
      end
    end
    w_full = w_used == 3'(Ways);
    // After an overflow it no longer matters whether the row is further along.
    w_end  = w_found || !w_full || overflow_q;
    w_lack = overflow_q || room_q == '0;
    w_add  = state_q == StWalk && walk_q == WkDecide && !w_found && w_end && !w_lack;
  end

  always_ff @(posedge clk_i) begin
    if (walk_q == WkPick) begin
      w_place_q <= w_pick;
      w_bank_q  <= s3_bank_q[w_pick];
      w_index_q <= s3_index_q[w_pick];
    end
    if (walk_q == WkCatch) begin
      w_set_q <= bank_word[w_bank_q];
    end
    if (walk_q == WkDecide) begin
      w_position_q[w_place_q] <= w_found ? w_match : next_q;
      w_new_q[w_place_q]      <= w_add;
      w_overflow_q[w_place_q] <= !w_found;
      if (w_add) begin
        w_overflow_q[w_place_q] <= 1'b0;
      end
      w_index_q <= w_index_q + 1'b1;
      if (w_index_q == '1) begin
        w_bank_q <= bank_t'((32'(w_bank_q) + 1) & 32'(Banks - 1));
      end
    end
    if (state_q != StWalk || (walk_q == WkPick && w_all_done && out_ready)) begin
      w_new_q      <= '0;
      w_overflow_q <= '0;
    end
  end

  // ---------------------------------------------------------------------- ports of the banks
  always_comb begin
    bank_read       = '0;
    bank_read_index = '0;
    bank_write      = '0;
    for (int unsigned bank = 0; bank < Banks; bank++) begin
      bank_write_index[bank] = sweep_q;
      bank_write_entry[bank] = '0;
    end
    if (state_q == StSweep) begin
      bank_write = '1;
    end else begin
      for (int unsigned place = 0; place < ColdLanes; place++) begin
        for (int unsigned bank = 0; bank < Banks; bank++) begin
          if (issue && b_take[place] && b_bank_q[place] == bank_t'(bank)) begin
            bank_read[bank]       = 1'b1;
            bank_read_index[bank] = b_index_q[place];
          end
          if (put_now[place] && s3_bank_q[place] == bank_t'(bank)) begin
            bank_write[bank][put_way[place]] = 1'b1;
            bank_write_index[bank]           = s3_index_q[place];
            bank_write_entry[bank]           = '{generation: generation_q,
                                                 position: put_position[place],
                                                 row: s3_rows_q[place]};
          end
        end
      end
      if (state_q == StWalk && walk_q == WkRead) begin
        bank_read[w_bank_q]       = 1'b1;
        bank_read_index[w_bank_q] = w_index_q;
      end
      if (w_add) begin
        bank_write[w_bank_q][way_t'(w_used)] = 1'b1;
        bank_write_index[w_bank_q]           = w_index_q;
        bank_write_entry[w_bank_q]           = '{generation: generation_q, position: next_q,
                                                 row: s3_rows_q[w_place_q]};
      end
    end
  end

  // --------------------------------------------------------------------------------------- state
  assign start_ready_o = state_q == StRun && idle_o;
  assign start_fire    = start_valid_i && start_ready_o;
  assign idle_o        = state_q == StRun && !h_valid_q && !b_valid_q && !s1_valid_q && !s2_valid_q
                         && !s3_valid_q && !res_valid_o;
  assign stall_o       = b_valid_q && !(issue && b_last) && !(s3_valid_q && !out_ready);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q      <= StSweep;
      walk_q       <= WkPick;
      sweep_q      <= '0;
      generation_q <= '0;
      overflow_q   <= 1'b0;
      w_done_q     <= '0;
      room_q       <= '0;
      next_q       <= '0;
    end else begin
      unique case (state_q)
        StSweep: begin
          sweep_q <= sweep_q + 1'b1;
          if (sweep_q == '1) begin
            state_q <= StRun;
          end
        end

        StRun: begin
          w_done_q <= '0;
          if (start_fire) begin
            overflow_q   <= 1'b0;
            room_q       <= (PositionBits + 1)'(cold_rows_max_i);
            next_q       <= '0;
            generation_q <= generation_q + 1'b1;
            if (generation_q == LastGeneration) begin
              // Generation 0 is that of swept entries.
              generation_q <= generation_t'(1);
              state_q      <= StSweep;
            end
          end else begin
            next_q <= next_q + position_t'(counted);
            room_q <= room_q - (PositionBits + 1)'(counted);
            if (walk_due) begin
              state_q <= StWalk;
            end
          end
        end

        StWalk: begin
          unique case (walk_q)
            WkPick: begin
              if (!s3_valid_q) begin
                // A gap between groups; the walk ends with the last group.
                if (!s1_valid_q && !s2_valid_q) begin
                  state_q <= StRun;
                end
              end else if (!w_all_done) begin
                walk_q <= WkRead;
              end else if (out_ready) begin
                w_done_q <= '0;
                if (!s1_valid_q && !s2_valid_q) begin
                  state_q <= StRun;
                end
              end
            end
            WkRead: walk_q <= WkCatch;
            WkCatch: walk_q <= WkDecide;
            default: begin
              walk_q <= WkRead;
              if (w_end) begin
                w_done_q[w_place_q] <= 1'b1;
                walk_q              <= WkPick;
                if (w_add) begin
                  next_q <= next_q + 1'b1;
                  room_q <= room_q - 1'b1;
                end else if (!w_found) begin
                  overflow_q <= 1'b1;
                end
              end
            end
          endcase
        end

        default: state_q <= StSweep;
      endcase
    end
  end

  hotline_spill_register #(
    .Width(ColdLanes * (35 + PositionBits) + UserBits + 1)
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (out_valid && out_ready),
    .in_ready_o (out_ready),
    .in_data_i  ({s3_mask_q, s3_rows_q, out_position, out_new, out_overflow, s3_user_q, s3_last_q}),
    .out_valid_o(res_valid_o),
    .out_ready_i(res_ready_i),
    .out_data_o ({res_mask_o, res_rows_o, res_positions_o, res_new_o, res_overflow_o, res_user_o,
                  res_last_o})
  );

`ifndef SYNTHESIS
  a_start_quiet : assert property (@(posedge clk_i) disable iff (!rst_ni)
      start_fire |-> !req_valid_i);
  a_limit : assert property (@(posedge clk_i) disable iff (!rst_ni)
      start_fire |-> cold_rows_max_i != '0 && cold_rows_max_i <= ColdRowsMax);
  a_mask : assert property (@(posedge clk_i) disable iff (!rst_ni)
      req_valid_i |-> req_mask_i != '0);
`endif

endmodule
