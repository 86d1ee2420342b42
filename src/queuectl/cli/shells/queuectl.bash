# Completion of queuectl for bash; written by: queuectl completion bash
# Nothing is run but for ids, queues, limits, schedules, tokens, tags and groups, when they are asked for.

# Sets node (aliases resolved), verbs, flags and places for the words that were typed.
_queuectl_node() {
    verbs='' flags='' places=''
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
    local found
    while IFS=$'\t' read -r found _; do
        COMPREPLY+=("$found")
    done < <("$program" ${db:+--db "$db"} _complete "$kind" "$cur" 2>/dev/null </dev/null)
}

_queuectl_files() {
    local found
    compopt -o filenames 2>/dev/null
    while IFS= read -r found; do
        COMPREPLY+=("$found")
    done < <(compgen "$1" -- "$cur")
}

_queuectl_offer() {
    local values=${kind#*:} head=''
    case $kind in
        set:*) COMPREPLY+=($(compgen -W "${values//,/ }" -- "$cur")) ;;
        list:*)
            [[ $cur == *,* ]] && head=${cur%,*},
            COMPREPLY+=($(compgen -P "$head" -W "${values//,/ }" -- "${cur##*,}"))
            ;;
        ids:* | queues | limits | schedules | tokens | tags | groups) _queuectl_ask ;;
        files) _queuectl_files -f ;;
        dirs) _queuectl_files -d ;;
        command) if ((place == 0)); then COMPREPLY+=($(compgen -c -- "$cur")); else _queuectl_files -f; fi ;;
    esac
}

_queuectl_place() {
    local -a kinds
    read -ra kinds <<<"$places"
    local last=$((${#kinds[@]} - 1))
    kind=''
    if ((place <= last)); then
        kind=${kinds[place]%\*}
    elif ((last >= 0)) && [[ ${kinds[last]} == *\* ]]; then
        kind=${kinds[last]%\*}
    fi
}

_queuectl() {
    local program=${1/#\~/$HOME} cur=${COMP_WORDS[COMP_CWORD]} current word glue='' node='' want='' db='' dashes=''
    local verbs flags places kind='' place=0
    local -a typed=()
    # bash cuts words at = and : as readline does; here they belong together, but for the ::: of `map`.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if [[ $word == :::* ]]; then
            typed+=("$word")
            glue=''
            continue
        fi
        if ((${#typed[@]})) && [[ $word == [=:]* || ($glue && $word) ]]; then
            typed[${#typed[@]} - 1]+=$word
        else
            typed+=("$word")
        fi
        [[ $word == *[=:] ]] && glue=1 || glue=''
    done
    [[ $cur == [=:] ]] && cur=''
    COMPREPLY=()
    ((${#typed[@]})) || return 0
    current=${typed[${#typed[@]} - 1]}
    _queuectl_node ''
    for word in "${typed[@]:0:${#typed[@]} - 1}"; do
        if [[ $want ]]; then
            [[ $want == --db ]] && db=$word
            want=''
        elif [[ $dashes ]]; then
            ((place += 1))
        elif [[ $word == -- ]]; then
            dashes=1
        elif [[ $word == --db=* ]]; then
            db=${word#--db=}
        elif [[ $word == -* ]]; then
            _queuectl_value "$node" "$word"
            [[ $kind ]] && want=$word
        elif ((place == 0)) && [[ " $verbs " == *" $word "* ]]; then
            _queuectl_node "${node:+$node }$word"
        else
            ((place += 1))
        fi
    done
    kind=''
    if [[ $want ]]; then
        _queuectl_value "$node" "$want"
    elif [[ $dashes ]]; then
        kind=command
    elif [[ $current == --*=* ]]; then
        _queuectl_value "$node" "${current%%=*}"
    elif [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    else
        ((place == 0)) && COMPREPLY=($(compgen -W "$verbs" -- "$cur"))
        _queuectl_place
    fi
    _queuectl_offer
    return 0
}

complete -F _queuectl queuectl
