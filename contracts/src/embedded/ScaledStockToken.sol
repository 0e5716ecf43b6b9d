// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {StockIssuer} from "./StockIssuer.sol";

/// @title A stock token of the embedded chain that behaves as those deployed on chain 4663
/// @notice Balances stay over a corporate action; `uiMultiplier` says how many shares one token stands for. A scheduled
/// change takes effect in the first block at or after `effectiveAt`, without a log or a transaction. It lacks what the
/// deployed tokens lack: the draft's `toUIAmount` and `fromUIAmount`, and an event for a cancelled schedule.
/// @dev The implementation behind a beacon proxy, whose beacon is the issuer.
contract ScaledStockToken is ERC20, IERC165 {
    uint256 private constant _ONE = 1e18;
    bytes4 private constant _SCALED = 0xa60bf13d; // uiMultiplier()
    bytes4 private constant _PENDING = 0x4bd27648; // newUIMultiplier() ^ effectiveAt()
    bytes4 private constant _BALANCES = 0xd890fd71; // balanceOfUI(address) ^ totalSupplyUI()

    /// @notice When the last change takes or took effect, in Unix seconds
    uint256 public effectiveAt;

    /// @notice The multiplier from `effectiveAt` on; still the last change once that has passed, 1e18 is one share
    uint256 public newUIMultiplier;

    uint256 private _multiplier;

    StockIssuer public issuer;
    bool public tokenPaused;
    bool public oraclePaused;

    string private _name;
    string private _symbol;

    event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 effectiveAtTimestamp);
    event TransferWithScaledUI(address indexed from, address indexed to, uint256 value, uint256 uiValue);
    event Paused();
    event Unpaused();
    event OraclePaused();
    event OracleUnpaused();

    error AlreadyInitialized();
    error NotIssuer(address account);
    error AccountBlocked(address account);
    error TokenPaused();
    error InvalidMultiplier();

    modifier onlyIssuer() {
        if (msg.sender != issuer.owner()) revert NotIssuer(msg.sender);
        _;
    }

    /// @dev No account can initialize the implementation itself.
    constructor() ERC20("", "") {
        issuer = StockIssuer(address(1));
    }

    /// @dev Called by the proxy's constructor, whose sender is the issuer.
    function initialize(string calldata name_, string calldata symbol_) external {
        if (address(issuer) != address(0)) revert AlreadyInitialized();
        issuer = StockIssuer(msg.sender);
        _name = name_;
        _symbol = symbol_;
        _multiplier = newUIMultiplier = _ONE;
    }

    /// @notice Changes the multiplier at once
    function updateMultiplier(uint256 multiplier) external onlyIssuer {
        _schedule(multiplier, block.timestamp);
    }

    /// @notice Schedules a change of the multiplier; the same schedule may be set, and its event emitted, again
    function updateMultiplier(uint256 multiplier, uint256 effectiveAt_) external onlyIssuer {
        _schedule(multiplier, effectiveAt_);
    }

    function mint(address to, uint256 amount) external onlyIssuer {
        _mint(to, amount);
    }

    /// @notice Burns from any account, also a blocked one
    function adminBurn(address from, uint256 amount) external onlyIssuer {
        _burn(from, amount);
    }

    function setTokenPaused(bool paused_) external onlyIssuer {
        tokenPaused = paused_;
        if (paused_) emit Paused();
        else emit Unpaused();
    }

    /// @notice Advises readers not to rely on prices; nothing here depends on it
    function setOraclePaused(bool paused_) external onlyIssuer {
        oraclePaused = paused_;
        if (paused_) emit OraclePaused();
        else emit OracleUnpaused();
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == type(IERC165).interfaceId || id == _SCALED || id == _PENDING || id == _BALANCES;
    }

    function balanceOfUI(address account) external view returns (uint256) {
        return _toUI(balanceOf(account));
    }

    function totalSupplyUI() external view returns (uint256) {
        return _toUI(totalSupply());
    }

    function name() public view override returns (string memory) {
        return _name;
    }

    function symbol() public view override returns (string memory) {
        return _symbol;
    }

    function uiMultiplier() public view returns (uint256) {
        return block.timestamp >= effectiveAt ? newUIMultiplier : _multiplier;
    }

    /// @notice Whether this token or all of the issuer's are paused
    function paused() public view returns (bool) {
        return tokenPaused || issuer.paused();
    }

    function _schedule(uint256 multiplier, uint256 at) private {
        if (multiplier == 0 || at < block.timestamp) revert InvalidMultiplier();
        uint256 current = uiMultiplier();
        emit UIMultiplierUpdated(current, multiplier, at);
        (_multiplier, newUIMultiplier, effectiveAt) = (current, multiplier, at);
    }

    /// @dev The issuer's mint and burn pass pauses and blocks.
    function _update(address from, address to, uint256 amount) internal override {
        if (from != address(0) && to != address(0)) {
            if (paused()) revert TokenPaused();
            if (issuer.isBlocked(from)) revert AccountBlocked(from);
            if (issuer.isBlocked(to)) revert AccountBlocked(to);
        }
        super._update(from, to, amount);
        emit TransferWithScaledUI(from, to, amount, _toUI(amount));
    }

    function _toUI(uint256 amount) private view returns (uint256) {
        return Math.mulDiv(amount, uiMultiplier(), _ONE);
    }
}
