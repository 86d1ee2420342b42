#compdef queuectl
# Completion of queuectl for zsh; written by: queuectl completion zsh
# Nothing is run but for ids, queues, limits, schedules, tokens, tags and groups, when they are asked for.

# Sets node (aliases resolved), verbs, flags and places for the words that were typed.
_queuectl_node() {
    verbs=() flags=() places=()
    case $1 in
@NODES@
    esac
}

# Sets kind to what the value of a flag may be; empty: it takes none.
_queuectl_value() {
    kind=''
    case "$1 $2" in
@VALUES@
    esac
}

_queuectl_ask() {
    local line
    local -a found asked
    asked=("${(Q)words[1]/#\~/$HOME}")
    [[ -n $db ]] && asked+=(--db "${(Q)db}")
    for line in "${(@f)$($asked _complete "$kind" "${(Q)PREFIX}" 2>/dev/null </dev/null)}"; do
        case $line in
            (*$'\t'*) found+=("${line%%$'\t'*}:${${${line#*$'\t'}//\\/\\\\}//:/\\:}") ;;
            (?*) found+=("$line") ;;
        esac
    done
    _describe -V "${kind%%:*}" found
}

_queuectl_offer() {
    local -a values
    values=(${(s:,:)${kind#*:}})
    case $kind in
        (set:*) compadd -a values ;;
        (list:*) compset -P '*,'; compadd -a values ;;
        (ids:*|queues|limits|schedules|tokens|tags|groups) _queuectl_ask ;;
        (files) _files ;;
        (dirs) _files -/ ;;
        (command) if ((place == 0)); then _command_names -e; else _files; fi ;;
        (*) return 1 ;;
    esac
}

_queuectl() {
    local node='' want='' db='' dashes='' kind='' word current=${words[CURRENT]}
    integer place=0
    local -a verbs flags places
    _queuectl_node ''
    for word in "${(@)words[2,CURRENT-1]}"; do
        if [[ -n $want ]]; then
            [[ $want == --db ]] && db=$word
            want=''
        elif [[ -n $dashes ]]; then
            ((place += 1))
        elif [[ $word == -- ]]; then
            dashes=1
        elif [[ $word == --db=* ]]; then
            db=${word#--db=}
        elif [[ $word == -* ]]; then
            _queuectl_value "$node" "$word"
            [[ -n $kind ]] && want=$word
        elif ((place == 0)) && [[ -n ${(M)verbs:#${word}:*} ]]; then
            _queuectl_node "${node:+$node }$word"
        else
            ((place += 1))
        fi
    done
    kind=''
    if [[ -n $want ]]; then
        _queuectl_value "$node" "$want"
    elif [[ -n $dashes ]]; then
        kind=command
    elif [[ $current == --*=* ]]; then
        _queuectl_value "$node" "${current%%=*}"
        compset -P '*='
    elif [[ $current == -* ]]; then
        _describe -o option flags
        return
    else
        ((place == 0 && $#verbs)) && _describe command verbs
        if ((place < $#places)); then
            kind=${places[place+1]%\*}
        elif [[ ${places[-1]-} == *\* ]]; then
            kind=${places[-1]%\*}
        fi
    fi
    _queuectl_offer
}

if [[ ${funcstack[1]-} == _queuectl ]]; then
    _queuectl "$@"
else
    compdef _queuectl queuectl
fi
